"""Everyday movements and exercises, authored as key postures: training data for pose priors that nobody has to record."""

from exercises.movements import MOVEMENTS
from exercises.perform import exercise_clips, perform

__all__ = ["MOVEMENTS", "exercise_clips", "perform"]
