"""Motion files in and out, retargeting, and what can be done with a clip."""

from mocap2ctrl.motion.load import LoadedMotion, load_motion

__all__ = ["LoadedMotion", "load_motion"]
