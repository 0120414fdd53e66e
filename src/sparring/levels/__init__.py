"""What matches start from. Loong's maps: file format, generator, facts about a map, the pool to train on."""
