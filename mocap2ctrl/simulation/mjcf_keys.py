"""A motion as keyframes of a plain MJCF model, which MuJoCo loads without this package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.clips import velocities
from mocap2ctrl.motion.npz import UNITS
from mocap2ctrl.simulation.mjcf import build_mjcf
from mocap2ctrl.types import Array, MotionClip, SimState


@dataclass(frozen=True, eq=False)
class Keys:
    """K moments of a motion, as MuJoCo counts coordinates.

    Attributes:
        time_s: (K,) seconds.
        qpos: (K, 7 + J) root position, root quaternion wxyz (both world), hinge angles.
        qvel: (K, 6 + J) root velocity (world), root angular velocity (in the root's own frame), hinge rates.
    """

    time_s: Array
    qpos: Array
    qvel: Array


def keys_of(clip: MotionClip, start: SimState, stride: int = 1) -> Keys:
    """Every `stride`-th frame of a simulation that is recorded at each of its steps, begun in `start`.

    Engines step semi-implicitly: q(t + h) = q(t) + h q'(t + h), so that differences of poses are the very velocities.
    """
    turn = rotations.multiply(rotations.conjugate(clip.root_orientation[:-1]), clip.root_orientation[1:])
    steps = [np.diff(clip.root_position, axis=0), rotations.to_rotation_vector(turn), np.diff(clip.angles, axis=0)]
    spin = rotations.rotate(rotations.conjugate(start.pose.root_orientation), start.root_angular_velocity)
    first = np.concatenate([start.root_velocity, spin, start.joint_velocities])
    qvel = np.concatenate([first[None], clip.fps * np.concatenate(steps, axis=1)])
    qpos = np.concatenate([clip.root_position, clip.root_orientation, clip.angles], axis=1)
    return Keys(np.arange(len(clip))[::stride] / clip.fps, qpos[::stride], qvel[::stride])


def keys_of_motion(clip: MotionClip) -> Keys:
    """Every frame of a motion that nobody need have simulated, with the velocities that differences of its poses tell."""
    v = velocities(clip)
    spin = rotations.rotate(rotations.conjugate(clip.root_orientation), v.root_angular)
    qpos = np.concatenate([clip.root_position, clip.root_orientation, clip.angles], axis=1)
    return Keys(np.arange(len(clip)) / clip.fps, qpos, np.concatenate([v.root, spin, v.joints], axis=1))


def mjcf_with_keys(character: Character, keys: Keys, time_step_s: float, comment: str = "") -> str:
    """MJCF text of `character` on flat ground, without actuators, with `keys` as keyframes `frame_0`, `frame_1` and on."""
    root = ElementTree.fromstring(build_mjcf(character, time_step_s, "none", pairs=False))
    root.insert(0, ElementTree.Comment(f" {comment.replace('--', '- -')} "))
    _make_visible(root)
    frames = ElementTree.SubElement(root, "keyframe")
    for number, (time, qpos, qvel) in enumerate(zip(keys.time_s, keys.qpos, keys.qvel, strict=True)):
        ElementTree.SubElement(
            frames, "key", name=f"frame_{number}", time=repr(float(time)), qpos=_numbers(qpos), qvel=_numbers(qvel)
        )
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def key_arrays(character: Character, keys: Keys) -> Mapping[str, npt.ArrayLike]:
    """The same motion as arrays by name, with names of bodies and joints, and units."""
    names = {"joint_names": character.hinge_names, "body_names": character.segment_names}
    return {"time": keys.time_s, "qpos": keys.qpos, "qvel": keys.qvel, **names, **UNITS}


def _make_visible(root: ElementTree.Element) -> None:
    """A light and a chequered ground, for viewers; physics is left alone."""
    asset = ElementTree.SubElement(root, "asset")
    ElementTree.SubElement(
        asset, "texture", name="ground", type="2d", builtin="checker", width="256", height="256",
        rgb1="0.82 0.82 0.8", rgb2="0.74 0.74 0.72",
    )  # fmt: skip
    ElementTree.SubElement(asset, "material", name="ground", texture="ground", texrepeat="1 1", texuniform="true")
    for world in root.iter("worldbody"):
        ElementTree.SubElement(world, "light", directional="true", pos="0 0 4", dir="0.3 0.3 -1", castshadow="true")
    for geom in root.iter("geom"):
        if geom.get("name") == "ground":
            geom.set("material", "ground")


def _numbers(values: Array) -> str:
    return " ".join(repr(float(v)) for v in values)
