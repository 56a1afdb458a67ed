"""Motion files in and out, retargeting, and what can be done with a clip."""
