"""mocap2ctrl: a motion goes in, a physics controller that performs it comes out."""

__version__ = "0.1.0"
