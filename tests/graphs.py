"""Control graphs for tests, of numbers that mean nothing."""

from __future__ import annotations

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.body import digest
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph, FeedbackPolicy
from mocap2ctrl.graph.skills import Skill, make_skill
from mocap2ctrl.types import MotionClip


def random_fragment(name: str, character: Character, rng: np.random.Generator, frames: int = 4) -> ControlFragment:
    """A fragment of random numbers; every other one has a policy."""
    joints = len(character.hinges)
    policy = FeedbackPolicy(rng.normal(size=(11, 18)), rng.normal(size=11), rng.random(11))
    return ControlFragment(
        name=name,
        skill=name.split("/", maxsplit=1)[0],
        frame_s=0.025,
        targets=rng.normal(size=(frames, joints)),
        reference_root_position=rng.normal(size=(frames + 1, 3)),
        reference_root_orientation=rotations.normalise(rng.normal(size=(frames + 1, 4))),
        reference_angles=rng.normal(size=(frames + 1, joints)),
        policy=policy if rng.random() < 0.5 else None,
    )


def random_graph(character: Character, seed: int = 0, frames: int = 4) -> ControlGraph:
    """Two loops of three fragments, a walk and a run, with a way from each to the other."""
    rng = np.random.default_rng(seed)
    names = [f"{skill}/{i}" for skill in ("walk", "run") for i in range(3)]
    successors = {f"{s}/{i}": (f"{s}/{(i + 1) % 3}",) for s in ("walk", "run") for i in range(3)}
    successors["walk/0"] += ("run/2",)
    successors["run/1"] += ("walk/2",)
    return ControlGraph(
        character=digest(character),
        gains="locomotion",
        fragments={name: random_fragment(name, character, rng, frames) for name in names},
        successors=successors,
        provenance={"seed": seed, "inputs": ["a", "b"]},
        description=character.description,
    )


def gait(
    character: Character, *, speed: float = 1.0, period_s: float = 1.0, lift: float = 0.3, lean: float = 0.0
) -> MotionClip:
    """A made-up loop along x that is symmetric if `lean` is 0: thighs and shanks swing, the root sways and turns a little."""
    count = 50
    t = np.linspace(0.0, 1.0, count + 1)
    phase = 2.0 * np.pi * t
    angles = np.zeros((count + 1, len(character.hinges)))
    for side, shift in (("left", 0.0), ("right", np.pi)):
        for hinge, size in (("thigh.flexion", lift), ("shank.flexion", 0.5 * lift), ("thigh.abduction", 0.1)):
            column = character.hinge_names.index(f"{side}_{hinge}")
            angles[:, column] = 0.2 + size * np.sin(phase + shift) + 0.2 * size * np.cos(2.0 * (phase + shift))
    angles[:, character.hinge_names.index("abdomen.lateral_bend")] = 0.1 * np.sin(phase) + lean
    heading = 0.1 * np.cos(phase)
    position = np.stack([speed * period_s * t, 0.02 * np.sin(phase), 0.9 + 0.03 * np.cos(2.0 * phase)], axis=1)
    return MotionClip("gait", count / period_s, position, rotations.yaw(heading), angles, loop=True)


def two_skills(character: Character) -> tuple[Skill, Skill]:
    """A walk and a run that is not much faster."""
    return (
        make_skill("walk", gait(character), character),
        make_skill("run", gait(character, speed=1.4, period_s=0.7, lift=0.4), character),
    )
