"""A student as a bot of the judge: its folder, its zip, and the proof that both are the same."""
