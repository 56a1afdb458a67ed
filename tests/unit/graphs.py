"""Control graphs for tests, of numbers that mean nothing."""

from __future__ import annotations

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.body import digest
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph, FeedbackPolicy


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


def random_graph(character: Character, seed: int = 0) -> ControlGraph:
    """Two loops of three fragments, a walk and a run, with a way from each to the other."""
    rng = np.random.default_rng(seed)
    names = [f"{skill}/{i}" for skill in ("walk", "run") for i in range(3)]
    successors = {f"{s}/{i}": (f"{s}/{(i + 1) % 3}",) for s in ("walk", "run") for i in range(3)}
    successors["walk/0"] += ("run/2",)
    successors["run/1"] += ("walk/2",)
    return ControlGraph(
        character=digest(character),
        gains="locomotion",
        fragments={name: random_fragment(name, character, rng) for name in names},
        successors=successors,
        provenance={"seed": seed, "inputs": ["a", "b"]},
        description=character.description,
    )
