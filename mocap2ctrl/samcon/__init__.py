"""Sampling-based control: open-loop reconstruction of a motion, and guided learning of linear feedback (Liu 2016)."""
