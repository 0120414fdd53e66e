"""Studies: what runs show about learning itself, measured from their folders, and figures that explain it."""
