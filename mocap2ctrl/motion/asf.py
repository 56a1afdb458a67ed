"""Reads Acclaim skeletons (ASF): bones with a direction, a length, a frame of their own and their degrees of freedom.

A bone's rotation is `C M C^-1`: its motion `M` about the axes of its own frame `C`, so that all rotations zero leave the
skeleton as the directions say. Rotations listed first are applied first, about fixed axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array

MAX_BONES = 1000
MAX_MAGNITUDE = 1e6
ROOT_FREEDOMS = ("tx", "ty", "tz", "rx", "ry", "rz")
ROTATIONS = ("rx", "ry", "rz")

INCH_M = 0.0254


@dataclass(frozen=True, eq=False)
class Bone:
    """One bone, or the root, which has no length.

    Attributes:
        name: in lower case is how files refer to it.
        parent: index; -1 for the root.
        vector: (3,) from its start to its end, file units.
        frame: (4,) quaternion of its own axes.
        freedoms: names of its values in a motion file, in order: rx, ry, rz, and for the root tx, ty, tz.
    """

    name: str
    parent: int
    vector: Array
    frame: Array
    freedoms: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class AcclaimSkeleton:
    """The bones of an ASF, the root first, parents before children.

    Attributes:
        bones: the root, then the others.
        root_position: (3,) that is added to the motion's.
        unit_m: metres a unit, by the convention that `length` is what an inch is divided by (0.45 at CMU).
        degrees: whether angles are in degrees, where a motion does not say.
    """

    bones: tuple[Bone, ...]
    root_position: Array
    unit_m: float
    degrees: bool


@dataclass(frozen=True)
class Line:
    """The words of one line and its number."""

    number: int
    words: tuple[str, ...]


@dataclass(frozen=True)
class AcclaimReader:
    """What both of Acclaim's files share: comments, white space, numbers, and errors that name the line."""

    path: str

    def lines(self, text: str) -> Iterator[Line]:
        """Lines with words on them; `#` begins a comment."""
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split("#", 1)[0].split()
            if words:
                yield Line(number, tuple(words))

    def fail(self, line: int, cause: str) -> MotionFileError:
        """The error to raise."""
        return MotionFileError(f"{self.path}, line {line}: {cause}")

    def numbers(self, words: Sequence[str], line: int, what: str) -> list[float]:
        """Finite numbers."""
        try:
            values = [float(word) for word in words]
        except ValueError:
            raise self.fail(line, f"{' '.join(words)[:40]!r} where numbers ({what}) should be") from None
        if not all(abs(value) <= MAX_MAGNITUDE for value in values):
            raise self.fail(line, f"{what} {' '.join(words)[:60]}; allowed are finite numbers up to {MAX_MAGNITUDE:g}")
        return values


def parse_asf(text: str, source: str) -> AcclaimSkeleton:
    """The skeleton in ASF `text`; `source` is named in errors.

    Raises:
        MotionFileError: with file, line and cause, for anything that is not a complete, consistent ASF.
    """
    reader = AcclaimReader(source)
    sections = _sections(reader, text)
    for name in ("root", "bonedata", "hierarchy"):
        if name not in sections:
            raise MotionFileError(f"{source}: no section :{name}; not a complete ASF")
    inch, degrees = _units(reader, sections.get("units", []))
    root, root_position = _root(reader, sections["root"], degrees)
    bones = _bones(reader, sections["bonedata"], degrees)
    return AcclaimSkeleton(_ordered(reader, root, bones, sections["hierarchy"]), root_position, INCH_M / inch, degrees)


def _sections(reader: AcclaimReader, text: str) -> dict[str, list[Line]]:
    """Lines by section; programs add their own, which nobody here asks for."""
    sections: dict[str, list[Line]] = {}
    current: list[Line] = []
    for line in reader.lines(text):
        if line.words[0].startswith(":"):
            current = sections.setdefault(line.words[0][1:].lower(), [])
        else:
            current.append(line)
    return sections


def _units(reader: AcclaimReader, lines: list[Line]) -> tuple[float, bool]:
    """What an inch is divided by, and whether angles are in degrees."""
    length, degrees = 1.0, True
    for line in lines:
        key, values = line.words[0].lower(), line.words[1:]
        if key == "length":
            length = (reader.numbers(values, line.number, "length") or [0.0])[0]
            if length <= 0.0:
                raise reader.fail(line.number, "the unit of length must be a positive number")
        elif key == "angle":
            degrees = _is_degrees(reader, line)
    return length, degrees


def _is_degrees(reader: AcclaimReader, line: Line) -> bool:
    unit = line.words[-1].lower()
    if not unit.startswith(("deg", "rad")):
        raise reader.fail(line.number, f"angles in {unit[:40]!r}; allowed are deg and rad")
    return unit.startswith("deg")


def _root(reader: AcclaimReader, lines: list[Line], degrees: bool) -> tuple[Bone, Array]:
    """The root and its position."""
    freedoms: tuple[str, ...] = ROOT_FREEDOMS
    axis, position, orientation, at = "XYZ", [0.0] * 3, [0.0] * 3, lines[0].number if lines else 0
    for line in lines:
        key, values = line.words[0].lower(), line.words[1:]
        if key == "order":
            freedoms = _freedoms(reader, line, ROOT_FREEDOMS)
        elif key == "axis":
            axis = "".join(values)
        elif key in ("position", "orientation"):
            found = reader.numbers(values, line.number, key)
            if len(found) != 3:
                raise reader.fail(line.number, f"{key} has {len(found)} numbers; it needs 3")
            position, orientation = (found, orientation) if key == "position" else (position, found)
    frame = _frame(reader, at, orientation, axis, degrees)
    return Bone("root", -1, np.zeros(3), frame, freedoms), np.array(position)


def _freedoms(reader: AcclaimReader, line: Line, allowed: tuple[str, ...]) -> tuple[str, ...]:
    freedoms = tuple(word.lower() for word in line.words[1:])
    if any(freedom not in allowed for freedom in freedoms) or len(set(freedoms)) != len(freedoms):
        raise reader.fail(
            line.number, f"degrees of freedom {' '.join(freedoms)[:60]!r}; allowed are {' '.join(allowed)}, each once"
        )
    return freedoms


def _frame(reader: AcclaimReader, line: int, angles: Sequence[float], order: str, degrees: bool) -> Array:
    """(4,) the rotation by three angles about fixed axes, in the order of their letters."""
    if sorted(order.upper()) != ["X", "Y", "Z"]:
        raise reader.fail(line, f"axis order {order[:40]!r}; allowed is X, Y and Z in any order")
    values = np.radians(angles) if degrees else np.array(angles)
    return fixed_axis_rotation([f"r{letter.lower()}" for letter in order], values)


def fixed_axis_rotation(freedoms: Sequence[str], angles: Array) -> Array:
    """(..., 4) rotations by `angles` (..., N) radians about the fixed axes named rx, ry or rz, the first one first."""
    total = np.broadcast_to(rotations.IDENTITY_QUATERNION, (*angles.shape[:-1], 4))
    for column, freedom in enumerate(freedoms):
        turn = rotations.about_axis(np.eye(3)["xyz".index(freedom[1])], angles[..., column])
        total = rotations.multiply(turn, total)
    return total


def _bones(reader: AcclaimReader, lines: list[Line], degrees: bool) -> dict[str, Bone]:
    """Bones by name, still without parents."""
    bones: dict[str, Bone] = {}
    block: dict[str, Line] = {}
    for line in lines:
        key = line.words[0].lower()
        if key == "begin":
            block = {"begin": line}
        elif key == "end":
            bone = _bone(reader, block, line, degrees)
            if bone.name in bones or bone.name == "root" or len(bones) >= MAX_BONES:
                raise reader.fail(line.number, f"bone {bone.name!r} is given twice, or there are over {MAX_BONES}")
            bones[bone.name] = bone
            block = {}
        elif not key.startswith("("):  # further limits, which are not needed
            block.setdefault(key, line)
    if block:
        raise reader.fail(lines[-1].number, "the file ends inside a bone; it is truncated")
    return bones


def _bone(reader: AcclaimReader, block: dict[str, Line], end: Line, degrees: bool) -> Bone:
    for key in ("begin", "name", "direction", "length"):
        if key not in block:
            raise reader.fail(end.number, f"a bone without {key!r}")
    direction, length = (
        np.array(reader.numbers(block[key].words[1:], block[key].number, key)) for key in ("direction", "length")
    )
    if direction.shape != (3,) or length.shape != (1,):
        raise reader.fail(block["direction"].number, "a direction needs 3 numbers, a length 1")
    norm = float(np.linalg.norm(direction))
    frame = rotations.IDENTITY_QUATERNION
    if (axis := block.get("axis")) is not None:
        if len(axis.words) not in (4, 5):
            raise reader.fail(axis.number, "an axis needs 3 angles and their order, for example 0 0 20 XYZ")
        order = axis.words[4] if len(axis.words) == 5 else "XYZ"
        frame = _frame(reader, axis.number, reader.numbers(axis.words[1:4], axis.number, "axis"), order, degrees)
    freedoms = _freedoms(reader, block["dof"], ROTATIONS) if "dof" in block else ()
    name = " ".join(block["name"].words[1:]).lower()
    if not name:
        raise reader.fail(block["name"].number, "a bone without a name")
    return Bone(name, -1, direction * float(length[0]) / max(norm, 1e-12), np.asarray(frame), freedoms)


def _ordered(reader: AcclaimReader, root: Bone, bones: dict[str, Bone], lines: list[Line]) -> tuple[Bone, ...]:
    """The root and the bones with their parents, in the order in which the hierarchy reaches them."""
    ordered = [root]
    place = {"root": 0}
    for line in lines:
        above, *below = (word.lower() for word in line.words)
        if above in ("begin", "end") and not below:
            continue
        if above not in place:
            raise reader.fail(line.number, f"{above[:40]!r} has children before it has a parent")
        for name in below:
            if name not in bones or name in place:
                raise reader.fail(line.number, f"bone {name[:40]!r} is not in :bonedata, or has two parents")
            place[name] = len(ordered)
            bone = bones[name]
            ordered.append(Bone(name, place[above], bone.vector, bone.frame, bone.freedoms))
    if len(ordered) < len(bones) + 1:
        left = sorted(set(bones) - set(place))[0]
        raise reader.fail(lines[-1].number if lines else 0, f"bone {left!r} is missing in :hierarchy")
    return tuple(ordered)
