"""The simulated body: its description as data, its scaling, and its kinematics."""

from mocap2ctrl.character.model import Character, load_character

__all__ = ["Character", "load_character"]
