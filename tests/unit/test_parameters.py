"""The parameter vector: one declaration, packing by block, bounds and the prior's penalty in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mocap2ctrl.control.parameters import Parameter, ParameterSpec

NUMBERS = st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=4)


def spec() -> ParameterSpec:
    made = ParameterSpec()
    made.declare(
        "1.pose", [Parameter("1.pose.0", 1.0, 2.0, -4.0, 4.0, "rad"), Parameter("1.pose.1", 0.0, 0.5, -2, 2, "rad")]
    )
    made.declare("1.exit", [Parameter("1.exit.time", 0.2, 0.1, 0.1, 0.5, "s")])
    made.declare("1.free", [Parameter("1.free", 3.0, 4.0, -np.inf, np.inf, "")])
    return made


def test_blocks_tile_the_vector_in_order():
    made = spec()
    assert len(made) == 4
    assert [p.name for p in made.parameters] == ["1.pose.0", "1.pose.1", "1.exit.time", "1.free"]
    assert made.block("1.pose") == slice(0, 2)
    assert made.block("1.exit") == slice(2, 3)
    assert "1.exit" in made
    assert "2.exit" not in made
    np.testing.assert_array_equal(made.mean, [1.0, 0.0, 0.2, 3.0])
    np.testing.assert_array_equal(made.std, [2.0, 0.5, 0.1, 4.0])


def test_a_block_is_declared_once():
    made = spec()
    with pytest.raises(ValueError, match=r"'1\.exit' is declared twice"):
        made.declare("1.exit", [])
    assert len(made) == 4
    with pytest.raises(KeyError):
        made.block("2.exit")


def test_an_empty_declaration_is_an_empty_vector():
    empty = ParameterSpec()
    assert len(empty) == 0
    assert empty.values(np.zeros((3, 0))).shape == (3, 0)
    np.testing.assert_array_equal(empty.penalty(np.zeros((3, 0))), 0.0)


@given(z=NUMBERS)
def test_values_are_affine_in_z(z: list[float]):
    made = spec()
    np.testing.assert_allclose((made.values(z) - made.mean) / made.std, z, atol=1e-9)
    np.testing.assert_array_equal(made.values(np.array([z, z]))[1], made.values(z))


@given(values=NUMBERS)
def test_feasible_is_the_nearest_allowed_point(values: list[float]):
    made = spec()
    point = made.feasible(values)
    for p, given_, moved in zip(made.parameters, values, point, strict=True):
        assert p.lower <= moved <= p.upper
        assert moved == given_ or moved == (p.lower if given_ < p.lower else p.upper)
    np.testing.assert_array_equal(made.feasible(point), point)
    assert made.penalty(point) == 0.0


@given(values=NUMBERS)
def test_penalty_is_the_distance_from_the_box_in_spreads(values: list[float]):
    made = spec()
    expected = np.sum(np.abs(np.array(values) - made.feasible(values)) / made.std)
    assert made.penalty(values) == pytest.approx(expected)


def test_penalty_in_closed_form():
    made = spec()
    # 6 - 4 over 2, plus -2 + 3 over 0.5, plus 0.1 - 0.05 over 0.1; the free one costs nothing.
    assert made.penalty([6.0, -3.0, 0.05, 1e6]) == pytest.approx(1.0 + 2.0 + 0.5)
    assert made.penalty([4.0, -2.0, 0.5, 0.0]) == 0.0
    population = made.penalty(np.array([[[6.0, 0, 0.2, 0]], [[0, 0, 0.7, 0]]]))
    np.testing.assert_allclose(population, [[1.0], [2.0]])
