"""Quaternions: algebra, agreement with scipy, the logarithm's branches, continuity in time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from mocap2ctrl.geometry import rotations

component = st.floats(-1.0, 1.0)
quaternion = st.tuples(component, component, component, component).filter(lambda q: np.linalg.norm(q) > 0.05)
vector = st.tuples(component, component, component)


def unit(q: tuple[float, ...]) -> np.ndarray:
    return rotations.normalise(np.array(q))


def scipy_of(q: np.ndarray) -> Rotation:
    return Rotation.from_quat(np.asarray(q)[..., [1, 2, 3, 0]])


@given(a=quaternion, b=quaternion, v=vector)
def test_products_rotate_one_after_the_other(a, b, v):
    qa, qb = unit(a), unit(b)
    both = rotations.multiply(qa, qb)
    np.testing.assert_allclose(rotations.rotate(both, v), rotations.rotate(qa, rotations.rotate(qb, v)), atol=1e-12)
    np.testing.assert_allclose(scipy_of(both).as_matrix(), (scipy_of(qa) * scipy_of(qb)).as_matrix(), atol=1e-12)
    np.testing.assert_allclose(rotations.multiply(qa, rotations.conjugate(qa)), [1, 0, 0, 0], atol=1e-12)


@given(q=quaternion, v=vector)
def test_matrices_agree_with_scipy_and_with_rotate(q, v):
    matrix = rotations.to_matrix(unit(q))
    np.testing.assert_allclose(matrix, scipy_of(unit(q)).as_matrix(), atol=1e-12)
    np.testing.assert_allclose(matrix @ np.array(v), rotations.rotate(unit(q), v), atol=1e-12)
    back = rotations.from_matrix(matrix)
    assert back[0] >= 0.0
    np.testing.assert_allclose(rotations.to_matrix(back), matrix, atol=1e-12)


@given(q=quaternion)
def test_logarithm_and_exponential_are_inverse(q):
    r = rotations.to_rotation_vector(unit(q))
    assert np.linalg.norm(r) <= np.pi + 1e-12
    np.testing.assert_allclose(
        rotations.to_matrix(rotations.from_rotation_vector(r)), rotations.to_matrix(unit(q)), atol=1e-9
    )
    np.testing.assert_allclose(rotations.to_rotation_vector(-unit(q)), -r if unit(q)[0] == 0.0 else r, atol=1e-9)


@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-13, 1e-9, 1e-4, 1.0, 3.0, np.pi - 1e-9])
def test_rotation_vectors_keep_their_length_at_all_scales(angle: float):
    axis = np.array([2.0, -1.0, 2.0]) / 3.0
    r = rotations.to_rotation_vector(rotations.from_rotation_vector(angle * axis))
    np.testing.assert_allclose(r, angle * axis, rtol=1e-9, atol=1e-15)


def test_long_rotation_vectors_wind_around():
    axis = np.array([0.0, 0.6, 0.8])
    a, b = (rotations.from_rotation_vector(x * axis) for x in (1.0, 1.0 + 2 * np.pi))
    np.testing.assert_allclose(rotations.to_matrix(a), rotations.to_matrix(b), atol=1e-12)


@given(a=quaternion, b=quaternion, t=st.floats(0.0, 1.0))
def test_slerp_goes_the_shorter_way_at_even_speed(a, b, t):
    qa, qb = unit(a), unit(b)

    def angle(p, q) -> float:
        return float(np.linalg.norm(rotations.to_rotation_vector(rotations.multiply(p, rotations.conjugate(q)))))

    middle = rotations.slerp(qa, qb, t)
    assert angle(middle, qa) == pytest.approx(t * angle(qb, qa), abs=1e-7)
    assert angle(qb, middle) == pytest.approx((1 - t) * angle(qb, qa), abs=1e-7)


@given(angle=st.floats(-3.1, 3.1), tilt=st.floats(-0.5, 0.5))
def test_heading_is_the_yaw(angle: float, tilt: float):
    assert rotations.heading(rotations.yaw(angle)) == pytest.approx(angle)
    leaning = rotations.multiply(rotations.yaw(angle), rotations.about_axis([0, 1, 0], tilt))
    assert rotations.heading(leaning) == pytest.approx(angle)  # a lean about a level axis does not turn the heading


@given(q=quaternion, sign=st.sampled_from([-1.0, 1.0]))
def test_heading_turns_with_the_world(q, sign: float):
    turn = sign * 0.7
    off = rotations.heading(rotations.multiply(rotations.yaw(turn), unit(q))) - rotations.heading(unit(q)) - turn
    if np.hypot(unit(q)[0], unit(q)[3]) > 1e-3:  # upside down, a heading is undefined
        assert np.cos(off) == pytest.approx(1.0, abs=1e-9)


def test_signs_are_made_continuous():
    angles = np.linspace(0.0, 20.0, 200)
    q = rotations.about_axis([0, 0, 1], angles)
    flipped = q * np.where(np.random.default_rng(0).random(200) < 0.5, -1.0, 1.0)[:, None]
    flipped[0] = q[0]
    np.testing.assert_array_equal(rotations.continuous(flipped), q)


def test_rotation_vectors_unwind_over_many_turns():
    axis = np.array([0.6, 0.0, 0.8])
    for rate in (0.3, -0.3):
        angles = rate * np.arange(100)
        made = rotations.unwrapped_rotation_vectors(rotations.about_axis(axis, angles))
        np.testing.assert_allclose(made, angles[:, None] * axis, atol=1e-9)
        passing = rotations.unwrapped_rotation_vectors(rotations.about_axis(axis, angles - 50 * rate))
        assert np.max(np.linalg.norm(np.diff(passing, axis=0), axis=1)) < 0.31


def test_angular_velocity_is_in_the_world_frame():
    dt, omega = 0.01, np.array([0.3, -1.2, 2.0])
    start = rotations.from_rotation_vector([0.5, 1.0, -0.3])
    q = rotations.multiply(rotations.from_rotation_vector(np.arange(50)[:, None] * dt * omega), start)
    np.testing.assert_allclose(rotations.angular_velocity_world(q, dt), np.tile(omega, (50, 1)), atol=1e-9)
    np.testing.assert_array_equal(rotations.angular_velocity_world(q[:1], dt), np.zeros((1, 3)))


def test_batches_of_any_shape():
    q = rotations.normalise(np.random.default_rng(1).normal(size=(2, 5, 4)))
    v = np.random.default_rng(2).normal(size=(2, 5, 3))
    np.testing.assert_allclose(rotations.rotate(q, v)[1, 3], rotations.rotate(q[1, 3], v[1, 3]), atol=1e-15)
    assert rotations.rotate(q[:, :1], v).shape == (2, 5, 3)
    assert rotations.from_matrix(rotations.to_matrix(q)).shape == (2, 5, 4)
    np.testing.assert_allclose(rotations.about_axis([1, 0, 0], np.zeros((2, 5))), np.tile([1.0, 0, 0, 0], (2, 5, 1)))
