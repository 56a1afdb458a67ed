"""One walking person, written as BVH in many dialects: whatever the dialect, it is the same motion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.transform import Rotation

FRAMES = 12
FPS = 50.0

# Name, parent, offset in cm, y up, z forward, x left; and the axes that it turns about.
BODY: tuple[tuple[str, str, tuple[float, float, float], str], ...] = (
    ("hips", "", (0, 95, 0), "ZXY"),
    ("spine", "hips", (0, 12, 0), "ZXY"),
    ("chest", "spine", (0, 18, -1), "ZXY"),
    ("neck", "chest", (0, 24, 1), "ZXY"),
    ("head", "neck", (0, 10, 2), "ZXY"),
    *(
        row
        for side, x in (("left", 1), ("right", -1))
        for row in (
            (f"{side} clavicle", "chest", (3 * x, 20, 0), ""),
            (f"{side} upper arm", f"{side} clavicle", (15 * x, 0, 0), "ZXY"),
            (f"{side} forearm", f"{side} upper arm", (0, -29, 0), "X"),
            (f"{side} hand", f"{side} forearm", (0, -25, 0), "XZ"),
            (f"{side} thigh", "hips", (9 * x, -4, 0), "ZXY"),
            (f"{side} shin", f"{side} thigh", (0, -43, 0), "X"),
            (f"{side} foot", f"{side} shin", (0, -42, 0), "XZ"),
            (f"{side} toe", f"{side} foot", (0, -6, 14), ""),
        )
    ),
)
NAMES = tuple(row[0] for row in BODY)
TIPS = {
    "head": (0, 18, 0),
    "left hand": (0, -18, 0),
    "right hand": (0, -18, 0),
    "left toe": (0, 0, 6),
    "right toe": (0, 0, 6),
}


PARTS_OF_BODY = {
    "pelvis": "hips", "chest": "chest", "neck": "neck", "head": "head",
    **{f"{side} {part}": f"{side} {bone}" for side in ("left", "right") for part, bone in (
        ("hip", "thigh"), ("knee", "shin"), ("ankle", "foot"), ("toe", "toe"),
        ("shoulder", "upper arm"), ("elbow", "forearm"), ("wrist", "hand"))},
}  # fmt: skip
"""Our joints by the names of the parts."""


def angles(name: str, axes: str) -> np.ndarray:
    """(FRAMES, axes) degrees: a stride of a bit more than a second; knees bend back, elbows forward."""
    phase = 2.0 * np.pi * (np.arange(FRAMES) / 30.0 + 0.5 * name.startswith("left"))
    part = name.removeprefix("left ").removeprefix("right ")
    swing = {
        "thigh": (-5, 25),
        "shin": (25, 20),
        "foot": (-5, 8),
        "upper arm": (5, -18),
        "forearm": (-25, 8),
        "hand": (-5, 4),
    }
    middle, width = swing.get(part, (1.0, 3.0))
    seed = sum(map(ord, name))
    columns = []
    for axis in axes:
        small = 2.0 * np.sin(phase + seed + ord(axis))
        columns.append(middle + width * np.sin(phase) if axis == "X" else small)
    return np.stack(columns, axis=1) if axes else np.zeros((FRAMES, 0))


def rotations(name: str, axes: str) -> Rotation:
    """The joint's turn against its parent in each frame."""
    if not axes:
        return Rotation.identity(FRAMES)
    return Rotation.from_euler(axes, angles(name, axes), degrees=True)


def root_path() -> np.ndarray:
    """(FRAMES, 3) cm: forward at 1.2 m/s."""
    time = np.arange(FRAMES) / FPS
    return np.stack([np.sin(4 * time), 94.0 + np.cos(8 * time), 120.0 * time], axis=1)


def positions() -> np.ndarray:
    """(FRAMES, joints, 3) in cm, y up: the truth, by matrices."""
    places, turns = {}, {}
    for name, parent, offset, axes in BODY:
        local = rotations(name, axes)
        places[name] = places[parent] + turns[parent].apply(offset) if parent else root_path()
        turns[name] = turns[parent] * local if parent else local
    return np.stack([places[name] for name in NAMES], axis=1)


@dataclass(frozen=True)
class Dialect:
    """How the motion is written.

    Attributes:
        channels: of a joint, by its name and axes; the axes as they are by default, the root's position before them.
        names: of the joints, by ours.
        tips: whether there are End Sites.
        number: format of numbers.
        unit: our centimetres a file unit are divided by it.
        turn: of the world, from our axes to the file's, which the root's motion bears.
        turn_rest: the same, which the rest pose bears.
        left_handed: x points the other way, so that turns about y and z do too.
        text: what is done with the finished text.
        before, after: skeletons that stand in front of the person or behind: HIERARCHY, numbers of a frame.
    """

    channels: Callable[[str, str], str] = lambda name, axes: ("XYZ" if name == "hips" else "") + axes.lower()
    names: Mapping[str, str] = field(default_factory=dict)
    tips: bool = True
    number: str = "%.9f"
    unit: float = 1.0
    turn: Rotation = field(default_factory=Rotation.identity)
    turn_rest: Rotation = field(default_factory=Rotation.identity)
    left_handed: bool = False
    text: Callable[[str], str] = lambda text: text
    before: tuple[str, str] = ("", "")
    after: tuple[str, str] = ("", "")

    def write(self) -> str:
        """The file."""
        hierarchy = ["HIERARCHY", *self.before[0].splitlines(), *self._joint("hips", 0), *self.after[0].splitlines()]
        columns = [self._values(name, axes) for name, _, _, axes in self._ordered()]
        rows = np.concatenate(columns, axis=1)
        lines = [
            f"{self.before[1]} {' '.join(self.number % value for value in row)} {self.after[1]}".strip() for row in rows
        ]
        head = ["MOTION", f"Frames: {FRAMES}", f"Frame Time: {1 / FPS:.6f}"]
        return self.text("\n".join([*hierarchy, *head, *lines]) + "\n")

    def _ordered(self) -> list[tuple[str, str, tuple[float, float, float], str]]:
        """Depth first, as a hierarchy lists its channels."""
        order: list[tuple[str, str, tuple[float, float, float], str]] = []

        def visit(row: tuple[str, str, tuple[float, float, float], str]) -> None:
            order.append(row)
            for child in (other for other in BODY if other[1] == row[0]):
                visit(child)

        visit(BODY[0])
        return order

    def _joint(self, name: str, depth: int) -> list[str]:
        _, parent, offset, axes = next(row for row in BODY if row[0] == name)
        pad = "  " * depth
        channels = self.channels(name, axes)
        words = [f"{letter.upper()}{'position' if letter.isupper() else 'rotation'}" for letter in channels]
        lines = [f"{pad}{'JOINT' if parent else 'ROOT'} {self.names.get(name, name)}", pad + "{"]
        lines.append(f"{pad}  OFFSET {self._vector(offset)}")
        lines.append(f"{pad}  CHANNELS {len(words)} {' '.join(words)}".rstrip())
        for child in (row[0] for row in BODY if row[1] == name):
            lines += self._joint(child, depth + 1)
        if self.tips and name in TIPS:
            lines += [pad + "  End Site", pad + "  {", f"{pad}    OFFSET {self._vector(TIPS[name])}", pad + "  }"]
        return [*lines, pad + "}"]

    def _vector(self, offset: tuple[float, float, float]) -> str:
        return " ".join(self.number % value for value in self._flipped(self.turn_rest.apply(offset)) / self.unit)

    def _values(self, name: str, axes: str) -> np.ndarray:
        channels = self.channels(name, axes)
        order = "".join(letter.upper() for letter in channels if letter.islower())
        local = self.turn_rest * rotations(name, axes) * self.turn_rest.inv()
        local = self.turn * local if name == "hips" else local
        place = root_path() if name == "hips" else np.array([self._offset(name)] * FRAMES)
        place = (self.turn * self.turn_rest).apply(place) if name == "hips" else self.turn_rest.apply(place)
        place = self._flipped(place)
        signs = np.array([-1.0 if self.left_handed and letter != "X" else 1.0 for letter in order])
        if len(order) == 3:
            turned = local.as_euler(order, degrees=True)
        else:
            assert order == axes, "fewer channels only where the motion needs no more"
            turned = angles(name, axes)
        turned_by = dict(zip(order, (turned * signs).T, strict=True))
        columns = [
            place[:, "XYZ".index(letter)] / self.unit if letter.isupper() else turned_by[letter.upper()]
            for letter in channels
        ]
        return np.stack(columns, axis=1) if columns else np.zeros((FRAMES, 0))

    def _flipped(self, places: np.ndarray) -> np.ndarray:
        return places * np.array([-1.0, 1.0, 1.0]) if self.left_handed else places

    def _offset(self, name: str) -> tuple[float, float, float]:
        return next(row[2] for row in BODY if row[0] == name)


def all_axes(name: str, axes: str) -> str:
    """Six channels at the root, three at every other joint."""
    return ("XYZ" if name == "hips" else "") + "zxy"
