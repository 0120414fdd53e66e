"""Faces of Sparring's games that other libraries' code already knows."""
