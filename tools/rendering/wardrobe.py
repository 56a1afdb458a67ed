"""What the renderer's people are made of and wear: rounded solids, colours, patterns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from mocap2ctrl.types import Array
from rendering import solids

Place = tuple[float, float, float]
Plane = tuple[float, float, float, float]

NO_CUT: Plane = (0.0, 0.0, 0.0, 1.0)
PATTERNS = (solids.PLAIN, solids.PLAIN, solids.STRIPES, solids.CHECKS)


@dataclass(frozen=True)
class Solid:
    """A tapered capsule in a segment's frame (of a body of 1.75 m, metres): see `solids.py`."""

    segment: str
    group: str
    material: int
    start: Place
    end: Place
    radii: tuple[float, float]
    blend: float = 0.03
    folds: float = 0.0
    cut: Plane = NO_CUT
    cloth_of: str | None = None
    """The segment that its pattern and folds move with, if not its own."""


def pattern(rng: np.random.Generator) -> Array:
    """(3,) a shirt's pattern: its kind, its period in metres, and the share of the second colour."""
    return np.array([rng.choice(PATTERNS), rng.uniform(0.05, 0.09), rng.uniform(0.3, 0.55)])


def palette(rng: np.random.Generator) -> Array:
    """(materials, 2, 3) linear reflectances, drawn from what people wear."""
    skin, hair = np.array(
        rng.choice(
            [
                [[0.62, 0.40, 0.30], [0.09, 0.05, 0.03]],
                [[0.60, 0.38, 0.27], [0.22, 0.14, 0.07]],
                [[0.52, 0.31, 0.21], [0.03, 0.02, 0.015]],
                [[0.33, 0.18, 0.11], [0.012, 0.011, 0.011]],
                [[0.17, 0.09, 0.055], [0.012, 0.011, 0.011]],
            ]
        )
    )
    shirts = [
        [0.55, 0.08, 0.07],
        [0.62, 0.62, 0.58],
        [0.06, 0.16, 0.38],
        [0.10, 0.22, 0.12],
        [0.55, 0.36, 0.08],
        [0.2, 0.2, 0.21],
    ]
    trousers = [[0.055, 0.085, 0.17], [0.035, 0.035, 0.04], [0.30, 0.23, 0.15], [0.16, 0.16, 0.15]]
    first, second = rng.permutation(len(shirts))[:2]
    leg = np.array(rng.choice(trousers))
    shoe = rng.choice([[0.05, 0.05, 0.05], [0.55, 0.55, 0.53], [0.20, 0.09, 0.05], [0.06, 0.10, 0.25]])
    lips = skin * np.array([0.85, 0.5, 0.5])
    pairs = [
        (skin, lips),
        (hair, hair),
        (shirts[first], shirts[second]),
        (leg, 1.8 * leg + 0.02),
        (shoe, [0.6, 0.6, 0.57]),
    ]
    return np.array(pairs, float) * rng.uniform(0.9, 1.1, (5, 1, 1))


def clothes(*, long_sleeves: bool) -> tuple[Solid, ...]:
    """Flesh and clothes, group by group."""
    parts = [*_head(), *_torso(), *_hips()]
    for side, sign in (("left", 1.0), ("right", -1.0)):
        parts += [*_arm(side, sign), *_sleeve(side, sign, long_sleeves), *_leg(side, sign), *_shoe(side, sign)]
    order = list(dict.fromkeys(solid.group for solid in parts))
    return tuple(sorted(parts, key=lambda solid: order.index(solid.group)))


def _head() -> list[Solid]:
    skin = partial(Solid, "head", "face", solids.SKIN, blend=0.025)
    hair = partial(Solid, "head", "hair", solids.HAIR, folds=0.003)
    hairline, nape = (0.92, 0.0, -0.392, -0.041), (0.9, 0.0, -0.436, -0.072)
    return [
        skin((-0.012, 0.0, -0.03), (0.008, 0.0, 0.12), (0.060, 0.054)),
        skin((-0.025, 0.0, 0.208), (0.022, 0.0, 0.214), (0.077, 0.074)),
        skin((0.03, 0.0, 0.19), (0.05, 0.0, 0.108), (0.064, 0.036), blend=0.04),
        skin((0.03, 0.028, 0.13), (0.03, -0.028, 0.13), (0.036, 0.036)),
        skin((0.092, 0.0, 0.195), (0.108, 0.0, 0.162), (0.008, 0.013), blend=0.015),
        skin((0.004, 0.076, 0.165), (-0.004, 0.08, 0.198), (0.010, 0.016), blend=0.01),
        skin((0.004, -0.076, 0.165), (-0.004, -0.08, 0.198), (0.010, 0.016), blend=0.01),
        hair((-0.030, 0.0, 0.214), (0.022, 0.0, 0.217), (0.087, 0.083), cut=hairline),
        hair((-0.045, 0.0, 0.20), (-0.048, 0.0, 0.145), (0.076, 0.06), cut=nape),
    ]


def _torso() -> list[Solid]:
    chest = partial(Solid, "chest", "shirt", solids.SHIRT, blend=0.05, folds=0.0035)
    abdomen = partial(Solid, "abdomen", "shirt", solids.SHIRT, blend=0.07, folds=0.0035)
    hem, collar = (0.0, 0.0, -1.0, 0.085), (0.25, 0.0, 0.968, 0.297)
    below = partial(Solid, "pelvis", "shirt", solids.SHIRT, blend=0.05, folds=0.004, cut=hem)
    return [
        chest((-0.005, -0.062, 0.135), (-0.005, 0.062, 0.135), (0.110, 0.110)),
        chest((-0.004, -0.060, 0.04), (-0.004, 0.060, 0.04), (0.108, 0.108), blend=0.07),
        chest((-0.012, -0.088, 0.205), (-0.012, 0.088, 0.205), (0.078, 0.078)),
        chest((-0.016, -0.02, 0.262), (-0.010, -0.15, 0.222), (0.054, 0.058)),
        chest((-0.016, 0.02, 0.262), (-0.010, 0.15, 0.222), (0.054, 0.058)),
        chest((-0.018, 0.0, 0.25), (-0.008, 0.0, 0.29), (0.072, 0.062), blend=0.04, folds=0.001, cut=collar),
        abdomen((-0.003, -0.060, 0.06), (-0.003, 0.060, 0.06), (0.109, 0.109)),
        below((-0.006, 0.052, 0.09), (-0.008, 0.074, -0.11), (0.111, 0.122)),
        below((-0.006, -0.052, 0.09), (-0.008, -0.074, -0.11), (0.111, 0.122)),
    ]


def _hips() -> list[Solid]:
    trousers = partial(Solid, "pelvis", "trousers", solids.TROUSERS, blend=0.02, folds=0.002)
    return [
        trousers((0.0, -0.07, 0.0), (0.0, 0.07, 0.0), (0.094, 0.094)),
        trousers((-0.024, -0.065, -0.045), (-0.024, 0.065, -0.045), (0.086, 0.086)),
    ]


def _arm(side: str, sign: float) -> list[Solid]:
    upper, fore, hand = (
        partial(Solid, f"{side}_{part}", f"{side} arm", solids.SKIN) for part in ("upper_arm", "forearm", "hand")
    )
    return [
        upper((0.0, -0.008 * sign, -0.025), (0.0, 0.0, -0.325), (0.048, 0.040)),
        fore((0.0, 0.0, 0.0), (0.0, 0.0, -0.11), (0.041, 0.042)),
        fore((0.0, 0.0, -0.11), (0.0, 0.0, -0.255), (0.042, 0.028)),
        hand((-0.018, 0.0, -0.02), (-0.024, 0.0, -0.085), (0.020, 0.019), blend=0.02),
        hand((0.018, 0.0, -0.02), (0.022, 0.0, -0.085), (0.021, 0.019), blend=0.02),
        hand((-0.024, 0.0, -0.085), (-0.014, -0.03 * sign, -0.155), (0.017, 0.010), blend=0.02),
        hand((0.020, 0.0, -0.085), (0.014, -0.03 * sign, -0.165), (0.017, 0.010), blend=0.02),
        hand((0.022, 0.0, -0.03), (0.046, -0.012 * sign, -0.095), (0.017, 0.010), blend=0.015),
    ]


def _sleeve(side: str, sign: float, long_sleeves: bool) -> list[Solid]:
    upper = partial(Solid, f"{side}_upper_arm", "shirt", solids.SHIRT, folds=0.004)
    fore = partial(Solid, f"{side}_forearm", f"{side} sleeve", solids.SHIRT, folds=0.004)
    shoulder = (0.0, -0.016 * sign, -0.024)
    if not long_sleeves:
        return [upper(shoulder, (0.0, 0.0, -0.26), (0.059, 0.071), cut=(0.0, 0.0, -1.0, 0.195))]
    return [
        upper(shoulder, (0.0, 0.0, -0.325), (0.059, 0.055)),
        fore((0.0, 0.0, 0.01), (0.0, 0.0, -0.25), (0.057, 0.046), cut=(0.0, 0.0, -1.0, 0.238)),
    ]


def _leg(side: str, sign: float) -> list[Solid]:
    lap = partial(Solid, f"{side}_thigh", "shirt", solids.SHIRT, blend=0.05, folds=0.004, cloth_of="pelvis")
    thigh = partial(Solid, f"{side}_thigh", "trousers", solids.TROUSERS, blend=0.02)
    shank = partial(Solid, f"{side}_shank", f"{side} shank", solids.TROUSERS)
    return [
        lap((0.0, 0.0, 0.0), (0.0, 0.0, -0.11), (0.103, 0.107), cut=(0.0, 0.0, -1.0, 0.085)),
        thigh((0.0, -0.004 * sign, -0.02), (0.005, 0.0, -0.26), (0.094, 0.081), blend=0.025, folds=0.003),
        thigh((0.005, 0.0, -0.26), (0.004, 0.0, -0.428), (0.081, 0.069), folds=0.0035),
        shank((0.002, 0.0, 0.0), (-0.014, 0.0, -0.14), (0.068, 0.069), folds=0.0035),
        shank((-0.014, 0.0, -0.14), (-0.006, 0.0, -0.43), (0.069, 0.061), folds=0.004, cut=(0.0, 0.0, -1.0, 0.405)),
    ]


def _shoe(side: str, sign: float) -> list[Solid]:
    foot, toes = (
        partial(Solid, f"{side}_{part}", f"{side} shoe", solids.SHOE, blend=0.015) for part in ("foot", "toes")
    )
    return [
        foot((-0.033, 0.012 * sign, -0.0433), (0.135, 0.024 * sign, -0.0448), (0.025, 0.0235)),
        foot((-0.033, -0.012 * sign, -0.0433), (0.135, -0.022 * sign, -0.0448), (0.025, 0.0235)),
        foot((-0.012, 0.0, 0.02), (-0.006, 0.0, -0.03), (0.042, 0.038), blend=0.02),
        foot((0.01, 0.0, -0.012), (0.115, -0.002 * sign, -0.036), (0.040, 0.030), blend=0.02),
        toes((-0.01, 0.022 * sign, 0.0018), (0.038, 0.014 * sign, 0.0), (0.0233, 0.0215)),
        toes((-0.01, -0.021 * sign, 0.0018), (0.046, -0.012 * sign, 0.0), (0.0233, 0.0215)),
        toes((-0.02, 0.0, 0.008), (0.03, -0.002 * sign, 0.003), (0.029, 0.024)),
    ]
