"""Motions in place: a treadmill's, or a game's, whose feet slide back while they stand and whose body stays where it is.

Ground that moves steadily under a body at rest is ground at rest under a body that travels (Galileo), so the travel can be
put back; what then still slides is planted like any other foot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mocap2ctrl.character.model import SIDES
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.motion.anatomy import Body
from mocap2ctrl.types import Array

AUTO, NONE = "auto", "none"
SLOWEST, FASTEST = 0.3, 12.0
"""m/s of belts: slower ones are not told from skating feet; sprinters on treadmills are not faster."""
LOW_M = 0.03
LOW_PERCENTILE = 10.0
STEADY = (0.15, 0.35)
"""A foot moves with the belt if its velocity differs by less than so many m/s, or this share of the belt's."""
MOSTLY = 0.5
STAYS = 0.25
"""A body stays if it travels slower than this share of the belt's speed."""
WINDOW_S = 0.05


@dataclass(frozen=True, eq=False)
class Belt:
    """Ground that moves under a body.

    Attributes:
        velocity_m_s: (2,) along the ground, in the frame of `Body`; zero where the ground rests.
        put_back: whether the body was given the travel.
        stated: its speed is what the user said.
        feet_m_s: how fast feet slide back where they are low, of a stated belt; None where they tell nothing.
    """

    velocity_m_s: Array
    put_back: bool
    stated: bool = False
    feet_m_s: float | None = None

    @property
    def speed_m_s(self) -> float:
        """Of the ground."""
        return float(np.linalg.norm(self.velocity_m_s))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know of it."""
        if not self.speed_m_s:
            return ()
        if self.stated:
            return (self._said(),)
        seen = f"the feet that stand slide back at {self.speed_m_s:.2f} m/s while the body stays in place"
        if self.put_back:
            return (f"{seen}: the travel was put back, as if the ground rested; --belt none if that is wrong",)
        return (
            f"{seen}: a treadmill, or a clip to be played in place; nobody walks so on ground that rests, see --belt",
        )

    def _said(self) -> str:
        """What was done of a stated belt, and whether the feet contradict it."""
        done = f"the ground was taken to move back at {self.speed_m_s:.2f} m/s, as --belt says, and that travel was put back"
        if self.feet_m_s is None or abs(self.feet_m_s - self.speed_m_s) < _near(self.speed_m_s):
            return done
        return (
            f"{done}; but the feet that stand slide back at {max(self.feet_m_s, 0.0):.2f} m/s: leave --belt out, or give it "
            "another speed, unless you know better"
        )


def on_belt(body: Body, scale: float, belt: str | float | None, path: str) -> tuple[Body, Belt]:
    """The body, with its travel put back if that is asked for, and the belt that is evident.

    Args:
        body: the source, z up.
        scale: metres a file unit.
        belt: `auto` puts back what is evident, a number this speed in m/s, `none` takes the ground as still; None: the
            motion is left as it is, but a belt is told.
        path: named in errors.

    Raises:
        MotionFileError: `belt` is none of these.
    """
    if belt == NONE:
        return body, Belt(np.zeros(2), False)
    found = belt_velocity(body, scale)
    if belt is None or (belt == AUTO and not np.any(found)):
        return body, Belt(found, False)
    stated, feet = belt != AUTO, None
    if stated:
        back = _backwards(body, found)
        found = _checked(belt, path) * back
        low = _low_velocity(*_low_feet(body, scale))
        feet = None if low is None else float(low @ back)
    times = np.arange(len(body.positions))[:, None] / body.source.fps
    travel = np.concatenate([-found / scale * times, np.zeros((len(times), 1))], axis=1)
    return replace(body, positions=body.positions + travel[:, None]), Belt(found, True, stated, feet)


def belt_velocity(body: Body, scale: float) -> Array:
    """(2,) m/s of ground that both feet move with while they are low, and the pelvis does not; zero if there is none."""
    pelvis = 0.5 * scale * (body.at("left", "hip") + body.at("right", "hip"))[:, :2]
    sides = _low_feet(body, scale)
    belt = _low_velocity(*sides)
    if belt is None:
        return np.zeros(2)
    speed = float(np.linalg.norm(belt))
    near = _near(speed)
    steady = min(float(np.mean(np.linalg.norm(low - belt, axis=1) < near)) for low in sides)
    drift = float(np.linalg.norm(pelvis[-1] - pelvis[0])) * body.source.fps / (len(pelvis) - 1)
    evident = SLOWEST <= speed <= FASTEST and steady > MOSTLY and drift < STAYS * speed
    return belt if evident else np.zeros(2)


def _near(speed: float) -> float:
    """m/s by which a foot's velocity may differ from a belt's."""
    return max(STEADY[0], STEADY[1] * speed)


def _low_feet(body: Body, scale: float) -> list[Array]:
    """Of both sides; none where a single frame tells no velocity."""
    if len(body.positions) < 2:
        return [np.zeros((0, 2))] * len(SIDES)
    return [_low_velocities(body, scale, side) for side in SIDES]


def _low_velocity(left: Array, right: Array) -> Array | None:
    """(2,) m/s of feet that are low, from those of the sides (N, 2); None where they hardly are."""
    if min(len(left), len(right)) < 2:
        return None
    return np.asarray(0.5 * (np.median(left, axis=0) + np.median(right, axis=0)))


def _low_velocities(body: Body, scale: float, side: str) -> Array:
    """(N, 2) velocities along the ground, m/s, of an ankle and its toes in the frames in which they are low."""
    ankle, end = body.joints.limbs[side, "ankle"], body.end_of_foot(side)
    reach = max(1, round(0.5 * WINDOW_S * body.source.fps))
    frames = np.arange(len(body.positions))
    before, after = np.maximum(frames - reach, 0), np.minimum(frames + reach, len(frames) - 1)
    velocities = []
    for joint in (ankle, ankle if end is None else end):
        place = scale * body.positions[:, joint]
        low = place[:, 2] < np.percentile(place[:, 2], LOW_PERCENTILE) + LOW_M
        seconds = np.maximum(after - before, 1)[:, None] / body.source.fps
        velocities.append(((place[after] - place[before])[:, :2] / seconds)[low])
    return np.concatenate(velocities)


def _backwards(body: Body, found: Array) -> Array:
    """(2,) unit vector along which a belt runs: where feet slide, or else back from where the body faces."""
    if not np.any(found):
        across = np.mean(body.at("left", "hip") - body.at("right", "hip"), axis=0)
        found = np.array([-across[1], across[0]])
        return np.asarray(found / max(float(np.linalg.norm(found)), 1e-12))
    return np.asarray(found / np.linalg.norm(found))


def _checked(belt: str | float, path: str) -> float:
    try:
        speed = float(belt)
    except ValueError:
        speed = float("nan")
    if not 0.0 < speed <= FASTEST:
        raise MotionFileError(f"{path}: belt is {belt!r}; allowed are {AUTO}, {NONE}, or a speed up to {FASTEST:g} m/s")
    return speed
