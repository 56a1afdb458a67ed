"""Cameras that nobody has calibrated: from the person's own heads and feet, and from what phones write into their files."""
