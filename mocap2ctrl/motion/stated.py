"""What a user says of a motion file where its reader would infer, or could not: unit, up axis, joints, and the rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mocap2ctrl.errors import ConfigError, MotionFileError
from mocap2ctrl.motion.joint_map import read_joint_map
from mocap2ctrl.motion.source import SourceMotion
from mocap2ctrl.motion.units import UNITS, UP_AXES

UNIT_RANGE_M = (1e-4, 100.0)


@dataclass(frozen=True)
class Stated:
    """What is said of a file; None where its reader shall infer.

    Attributes:
        skeleton: the ASF of an AMC; one beside it if not given.
        fps: frames a second of a file that holds no rate, or one that cannot be true.
        unit: of length: m, dm, cm, mm, inch, ft, cmu (1/0.45 inch), or metres a unit.
        up: the up axis: x, y, z, -x, -y or -z.
        joint_map: a file that `joint_map.read_joint_map` reads, or joints' names by part.
    """

    skeleton: Path | str | None = None
    fps: float | None = None
    unit: str | float | None = None
    up: str | None = None
    joint_map: Path | str | Mapping[str, str] | None = None

    def checked(self) -> Stated:
        """The same with the joint map read.

        Raises:
            ConfigError, MotionFileError: something is not allowed; says what is.
        """
        _unit(self.unit)
        if self.up is not None and self.up not in UP_AXES:
            raise ConfigError(f"the up axis is {self.up!r}; allowed are {', '.join(UP_AXES)}")
        if isinstance(self.joint_map, str | Path):
            return replace(self, joint_map=read_joint_map(self.joint_map))
        return self

    @property
    def joints(self) -> Mapping[str, str]:
        """Joints' names by part, after `checked`."""
        return self.joint_map if isinstance(self.joint_map, Mapping) else {}

    @property
    def joint_map_name(self) -> str:
        """What errors call the joint map."""
        return str(self.joint_map) if isinstance(self.joint_map, str | Path) else "joint map"

    @property
    def unit_m(self) -> tuple[str, float] | None:
        """The unit's name and metres."""
        return _unit(self.unit)

    def rated(self, source: SourceMotion, path: str) -> SourceMotion:
        """The motion at its file's rate or, where that cannot be true, at `fps`.

        Raises:
            MotionFileError: it cannot be true, and no other was given.
        """
        if not source.rate_doubt:
            return source
        if self.fps is None:
            where = path + (", " if source.rate_doubt.startswith("line ") else ": ")
            raise MotionFileError(f"{where}{source.rate_doubt}; say the rate that it was recorded at, e.g. --fps 60")
        said = f"{source.rate_doubt}; it was taken to be {self.fps:g} frames a second, as --fps says"
        return replace(source, fps=float(self.fps), rate_doubt="", warnings=(*source.warnings, said))

    def as_json(self) -> dict[str, Any]:
        """What was said, for a capture's provenance: plain values, without what was not said."""
        skeleton = None if self.skeleton is None else str(Path(self.skeleton).resolve())
        values = {
            "skeleton": skeleton,
            "fps": self.fps,
            "unit": self.unit,
            "up": self.up,
            "joint_map": dict(self.joints) or None,
        }
        return {name: value for name, value in values.items() if value is not None}


NOTHING_STATED = Stated()


def _unit(unit: str | float | None) -> tuple[str, float] | None:
    if unit is None:
        return None
    known = {name: metres for name, metres, _, _ in UNITS}
    if unit in known:
        return str(unit), known[str(unit)]
    try:
        metres = float(unit)
    except ValueError:
        metres = 0.0
    low, high = UNIT_RANGE_M
    if not low <= metres <= high:
        raise ConfigError(
            f"the unit is {unit!r}; allowed are {', '.join(known)}, or its metres from {low:g} to {high:g}"
        )
    return f"{metres:g} m", metres
