"""Rotations and projection, free of any character or engine."""
