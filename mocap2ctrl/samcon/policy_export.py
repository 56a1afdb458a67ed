"""A learned graph for other programs: arrays, what they mean, and the character as plain MJCF.

`docs/play_policy.py` shows all that it takes to run it, without this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.files import write_arrays, write_json, write_text
from mocap2ctrl.fit.capture import make_folder
from mocap2ctrl.graph.fragments import ACTION_FEATURES, FEET, LATEST, STATE_FEATURES, ControlGraph
from mocap2ctrl.samcon.body import POINTS, body_of
from mocap2ctrl.samcon.features import feedback_actions, snapshot_coordinates
from mocap2ctrl.samcon.performer import FALLEN_RAD
from mocap2ctrl.samcon.sampling import LARGEST_RAD
from mocap2ctrl.samcon.tasks import reference_snapshot
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.simulation.mjcf import build_mjcf
from mocap2ctrl.simulation.pd_gains import PdGains, pd_gains

FORMAT, VERSION = "mocap2ctrl policy", 1
FILES = ("policy.npz", "policy.json", "character.xml")

STATE_GROUPS = (
    ("root_tilt", "rad", 2, "x and y of the rotation vector of the root's orientation without its heading"),
    ("root_height", "m", 1, "of the root's origin above the ground"),
    ("com", "m", 3, "centre of mass of the body, from the point on the ground below the root"),
    ("com_velocity", "m/s", 3, "of the centre of mass"),
    ("left_foot", "m", 3, "middle of the left foot, from the centre of mass"),
    ("right_foot", "m", 3, "middle of the right foot, from the centre of mass"),
    ("angular_momentum", "kg m^2/s", 3, "of the body about its centre of mass"),
)
"""Name, unit, length and meaning of the parts of s, in order (Liu 2016, §4)."""


def export_policy(graph: ControlGraph, character: Character, folder: Path) -> tuple[Path, ...]:
    """Writes `FILES` to `folder`; existing ones are replaced.

    Args:
        graph: what to export.
        character: whose it is, see `graph.body.character_of`.
        folder: made if it is not there.
    """
    make_folder(folder)
    paths = tuple(folder / name for name in FILES)
    servo = pd_gains(character, graph.gains)
    write_arrays(paths[0], policy_arrays(graph, character, servo))
    write_json(paths[1], policy_description(graph, character))
    write_text(paths[2], servo_mjcf(character, servo))
    return paths


def policy_arrays(graph: ControlGraph, character: Character, servo: PdGains) -> Mapping[str, npt.NDArray[Any]]:
    """All numbers that running a graph takes; `policy_description` says what they are."""
    fragments = list(graph.fragments.values())
    index = {fragment.name: i for i, fragment in enumerate(fragments)}
    edges = [(index[name], index[other]) for name in index for other in graph.successors.get(name, ())]
    joints, count = len(character.hinges), len(fragments)
    starts = np.array([reference_snapshot(fragment, 0) for fragment in fragments])
    qpos, qvel = snapshot_coordinates(starts, joints)
    gain, offset, variance = (np.zeros((count, *shape)) for shape in ((ACTION_FEATURES, STATE_FEATURES), (11,), (11,)))
    for i, fragment in enumerate(fragments):
        if fragment.policy is not None:
            gain[i], offset[i], variance[i] = fragment.policy.gain, fragment.policy.offset, fragment.policy.variance
    body = body_of(character)
    return {
        "fragment": np.array([fragment.name for fragment in fragments], np.str_),
        "skill": np.array([fragment.skill for fragment in fragments], np.str_),
        "edges": np.array(edges, np.int64).reshape(-1, 2),
        "first_target": np.cumsum([0, *(len(fragment.targets) for fragment in fragments)]),
        "targets": np.concatenate([fragment.targets for fragment in fragments]),
        "frame_s": np.array([fragment.frame_s for fragment in fragments]),
        "touchdown": np.array([-1 if f.touchdown is None else FEET.index(f.touchdown) for f in fragments]),
        "start_qpos": qpos,
        "start_qvel": qvel,
        "gain": gain,
        "offset": offset,
        "variance": variance,
        "learned": np.array([fragment.policy is not None for fragment in fragments]),
        "action_hinges": feedback_actions(character).hinges,
        "foot_points": np.asarray(body.point[:2]),
        "stiffness": servo.stiffness,
        "damping": servo.damping,
        "implicit_armature": PD_TIME_STEP_S * servo.damping,
    }


def policy_description(graph: ControlGraph, character: Character) -> dict[str, Any]:
    """What the arrays mean: names, units, frames; plain JSON values."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "character": {
            "name": character.name,
            "sha256": graph.character,
            "height_m": character.height_m,
            "mass_kg": character.mass_kg,
        },
        "time_step_s": PD_TIME_STEP_S,
        "gains": graph.gains,
        "hinges": list(character.hinge_names),
        "state_frame": "heading frame: origin on the ground below the root, z up, x where the root faces (heading = twist of the "
        "root's orientation about z)",
        "state": [
            {"name": name + (f".{axis}" if size > 1 else ""), "unit": unit, "meaning": meaning}
            for name, unit, size, meaning in STATE_GROUPS
            for axis in "xyz"[:size]
        ],
        "action": [
            {"name": name, "unit": "rad", "meaning": "offset of the targets of its hinges: a @ action_hinges"}
            for name in feedback_actions(character).names
        ],
        "law": "at the begin of fragment k: a = gain[k] @ s + offset[k], clipped to +-largest_action_rad; for its whole duration "
        "the servos' targets are targets[first_target[k] + i] + a @ action_hinges, each for frame_s[k] seconds",
        "touchdown": f"a fragment that waits for a foot ({FEET[0]} or {FEET[1]}, with the toes) ends after the first of its steps "
        "after which that foot touches the ground, or after ceil(latest_touchdown * steps) of them; when there are no more targets "
        "the last ones are held",
        "latest_touchdown": LATEST,
        "servo": "torque = stiffness (target - q) - damping q', clamped to the actuators' forcerange; q' is that of the end of the "
        "step, which MuJoCo does when implicit_armature is added to the hinges' dof_armature after compiling",
        "largest_action_rad": LARGEST_RAD,
        "fallen_action_rad": FALLEN_RAD,
        "foot_points": [f"{name}: its middle in the frame of the body of that name, m" for name in POINTS[:2]],
        "arrays": {
            "fragment, skill": "names, (F,)",
            "edges": "(E, 2) indices: the second may follow the first",
            "targets, first_target, frame_s": "rad; rows first_target[k] to first_target[k + 1] are fragment k's; s",
            "touchdown": "(F,) 0 or 1: ends when that foot is on the ground; -1: lasts its time",
            "start_qpos, start_qvel": "(F, 7 + J), (F, 6 + J) the reference at the begin, MuJoCo's coordinates",
            "gain, offset, variance": "(F, 11, 18), (F, 11), (F, 11) of a ~ N(gain s + offset, diag(variance)); else zeros",
            "action_hinges": "(11, J)",
            "stiffness, damping, implicit_armature": "(J,) N m/rad, N m s/rad, kg m^2",
        },
    }


def servo_mjcf(character: Character, servo: PdGains) -> str:
    """The character's model with its servos' gains and bounds written out."""
    root = ElementTree.fromstring(build_mjcf(character, PD_TIME_STEP_S, "pd"))
    for actuator, stiffness, damping, bound in zip(
        root.iterfind("actuator/general"), servo.stiffness, servo.damping, character.torque_bounds, strict=True
    ):
        actuator.set("gainprm", _number(stiffness))
        actuator.set("biasprm", f"0 {_number(-stiffness)} {_number(-damping)}")
        actuator.set("forcerange", f"{_number(-bound)} {_number(bound)}")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _number(value: float) -> str:
    return repr(float(value))
