"""Joint torques of a simulation beside what people can do and what the actuators may do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mocap2ctrl.character import Character
from mocap2ctrl.character.strength import directional_torque_limits, strength_table, without_side
from mocap2ctrl.types import Array


@dataclass(frozen=True)
class TorqueRow:
    """Torque in one direction of one movement, the stronger of left and right; N m.

    Attributes:
        joint: alpha group, for example `hip`.
        movement: for example `hip extension`.
        peak: largest torque in this direction.
        percentile_95: 95th percentile over all frames of the torque in this direction, other frames counting as none.
        human: maximum of a healthy man of the character's mass; None where no source was found.
        bound: the actuator's own, from gamma.
        source: where `human` comes from.
    """

    joint: str
    movement: str
    peak: float
    percentile_95: float
    human: float | None
    bound: float
    source: str

    @property
    def ratio(self) -> float | None:
        """Peak over human maximum."""
        return None if self.human is None else self.peak / self.human


def torque_rows(character: Character, torques: Array) -> list[TorqueRow]:
    """Both directions of every movement, in the character's order, from torques (T, J) in N m."""
    limits, table = directional_torque_limits(character), strength_table()
    rows = []
    for name in dict.fromkeys(without_side(name) for name in character.hinge_names):
        columns = [i for i, hinge in enumerate(character.hinge_names) if without_side(hinge) == name]
        segment = character.segments[character.hinge_segment[columns[0]]]
        for direction in (1, 0):
            one_way = np.maximum(torques[:, columns] * (1.0 if direction else -1.0), 0.0)
            human = float(limits[columns[0], direction])
            known = table.hinges.get(name)
            movement = known[direction].movement if known else f"{name.partition('.')[2]} {'-+'[direction]}"
            rows.append(
                TorqueRow(
                    joint=segment.group,
                    movement=f"{_joint_label(name, segment.group)} {movement}",
                    peak=float(one_way.max()),
                    percentile_95=float(np.percentile(one_way, 95, axis=0).max()),
                    human=human if np.isfinite(human) else None,
                    bound=float(character.torque_bounds[columns[0]]),
                    source=known[direction].source if known else "",
                )
            )
    return rows


def strongest_per_joint(rows: list[TorqueRow]) -> list[TorqueRow]:
    """Pick, for each joint, the row with the highest share of human strength; without any limit, the highest peak."""
    best: dict[str, TorqueRow] = {}
    for row in rows:
        label = row.movement.split()[0]
        if label not in best or _severity(row) > _severity(best[label]):
            best[label] = row
    return list(best.values())


def _severity(row: TorqueRow) -> tuple[bool, float]:
    return row.ratio is not None, row.ratio if row.ratio is not None else row.peak


def _joint_label(hinge: str, group: str) -> str:
    """Name the joint as people do: the segment for the trunk, the group for the rest."""
    segment = hinge.partition(".")[0]
    return {"spine": segment, "head": "neck"}.get(group, group)
