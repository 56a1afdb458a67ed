"""Pale soles: found below a dark shoe, told from a shadow, and from a shadow below a foot in the air."""

from __future__ import annotations

import numpy as np
import pytest

from mocap2ctrl.types import Array, Masks
from mocap2ctrl.video.soles import with_soles

TALL, WIDE, HEIGHT = 130, 60, 100.0
SHOE = slice(80, 100), slice(15, 45)
GROUND = 150.0


def seen(column: list[float]) -> tuple[Masks, Array, Array]:
    """A mask that ends at row 99, the light of a frame whose rows below it are `column`, and the empty scene's."""
    person = np.zeros((TALL, WIDE), bool)
    person[20:80, 25:35] = True
    person[SHOE] = True
    empty = np.tile(GROUND + 20.0 * np.sin(np.arange(WIDE) / 3.0), (TALL, 1)).astype(np.float32)
    light = np.where(person, 50.0, empty).astype(np.float32)
    for k, share in enumerate(column):
        light[100 + k, SHOE[1]] = share * empty[100 + k, SHOE[1]]
    return person, light, empty


def rows_given(column: list[float], *, noise: float = 0.0) -> list[int]:
    """How many rows below the shoe each of its columns is given, but for two at its ends."""
    person, light, empty = seen(column)
    light += noise * np.random.default_rng(1).normal(size=light.shape).astype(np.float32)
    found = with_soles(person, light, empty, HEIGHT)
    assert not (person & ~found).any()
    given = found & ~person
    assert not given[:, :13].any()
    assert not given[:, 47:].any()
    assert not given[:100].any()
    return [int(n) for n in np.count_nonzero(given[:, 17:43], axis=0)]


@pytest.mark.parametrize("noise", [0.0, 2.0])
def test_a_pale_sole_reaches_down_to_the_dark_line_below_it(noise: float) -> None:
    assert set(rows_given([1.25, 0.55, 0.8, 1.0], noise=noise)) == {2}


@pytest.mark.parametrize(
    "column",
    [
        [0.5, 0.6, 0.8, 1.0],  # from a shadow light only rises
        [1.0, 0.5, 0.5, 1.0],  # the ground between a foot in the air and its shadow
        [1.25, 1.2, 1.2, 1.2],  # what is lighter but does not end
        [1.0, 1.0, 1.0, 1.0],
    ],
)
def test_shadow_and_ground_are_no_sole(column: list[float]) -> None:
    assert set(rows_given(column, noise=1.0)) == {0}


def test_what_is_narrow_or_high_is_no_sole() -> None:
    person, light, empty = seen([1.0, 1.0, 1.0])
    light[100, 20:22] = 1.3 * empty[100, 20:22]
    light[101, 20:22] = 0.5 * empty[101, 20:22]
    light[60, 25:35], light[61, 25:35] = 1.3 * empty[60, 25:35], 0.5 * empty[61, 25:35]
    person[60:80] = False
    light[62:80, 25:35] = empty[62:80, 25:35]
    np.testing.assert_array_equal(with_soles(person, light, empty, HEIGHT), person)
    nobody = np.zeros_like(person)
    np.testing.assert_array_equal(with_soles(nobody, light, empty, HEIGHT), nobody)
