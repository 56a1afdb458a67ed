"""Pose priors: what goes in comes out, as far as the components allow; damaged and foreign files are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mocap2ctrl.character import Character, load_character
from mocap2ctrl.errors import PriorError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.clips import mirror
from mocap2ctrl.prior import IdentityPrior, PosePrior, load_prior, train
from mocap2ctrl.prior.choose import shipped_priors
from mocap2ctrl.prior.features import from_features, pose_angles, root_rotation_vector, to_features
from mocap2ctrl.prior.files import read_prior, save_prior
from mocap2ctrl.types import MotionClip


@pytest.fixture(scope="module")
def character() -> Character:
    return load_character()


@pytest.fixture(scope="module")
def clip(character: Character) -> MotionClip:
    """Two seconds in which all hinges swing, each with its own phase, near the middle of their ranges."""
    times = np.arange(61) / 30.0
    middle = 0.5 * (character.lower_limits + character.upper_limits)
    phases = np.random.default_rng(0).uniform(0, 2 * np.pi, len(middle))
    angles = middle + 0.3 * np.sin(2 * np.pi * times[:, None] + phases)
    tilt = rotations.about_axis((0.0, 1.0, 0.0), 0.2 * np.sin(2 * np.pi * times))
    root = np.tile([0.0, 0.0, 0.93], (61, 1))
    return MotionClip("swing", 30.0, root, rotations.multiply(rotations.yaw(times), tilt), angles)


@pytest.fixture(scope="module")
def prior(character: Character, clip: MotionClip) -> PosePrior:
    return train([clip], character, name="swing", variance=0.99)


def test_features_round_trip_beyond_half_a_turn():
    angles = np.array([[3.5, -1.0, 0.2]])
    np.testing.assert_allclose(from_features(3.0 * to_features(angles), np.array([1.0, 0.0, 0.0])), angles)


def test_heading_is_left_out_of_the_root():
    tilt = rotations.about_axis((0.0, 1.0, 0.0), 0.3)
    turned = rotations.multiply(rotations.yaw(np.array([0.0, 1.0, -2.5, 3.1])), tilt)
    np.testing.assert_allclose(root_rotation_vector(turned), np.tile([0.0, 0.3, 0.0], (4, 1)), atol=1e-9)


def test_all_components_reproduce_every_pose(character: Character, clip: MotionClip):
    whole = train([clip], character, name="whole", variance=1.0)
    both = pose_angles(clip)
    vectors, angles = whole.decode(whole.encode(both[:, :3], both[:, 3:]))
    np.testing.assert_allclose(vectors, both[:, :3], atol=1e-6)
    np.testing.assert_allclose(angles, both[:, 3:], atol=1e-6)


def test_variance_kept_is_the_least_that_suffices(prior: PosePrior):
    assert float(np.sum(prior.explained)) >= 0.99
    assert float(np.sum(prior.explained[:-1])) < 0.99
    assert np.all(np.diff(prior.sigma) <= 0)
    np.testing.assert_allclose(prior.basis.T @ prior.basis, np.eye(prior.size), atol=1e-12)


def test_coefficients_survive_decoding_and_encoding_near_the_mean(prior: PosePrior):
    # Exact only where the decoded features have unit length; small coefficients leave the manifold by their square.
    small = 0.01 * prior.sigma * np.random.default_rng(2).normal(size=(5, 4, prior.size))
    projected = prior.encode(*prior.decode(small))
    again = prior.encode(*prior.decode(projected))
    assert projected.shape == (5, 4, prior.size)
    assert np.max(np.abs(again - projected)) < 0.2 * np.max(
        np.abs(prior.encode(*prior.decode(np.zeros(prior.size)))) + 1
    )


def test_sigma_is_the_spread_of_the_training_poses(character: Character, clip: MotionClip):
    both = train([clip], character, name="x", variance=0.9, mirrored=True)
    angles = np.concatenate([pose_angles(clip), pose_angles(mirror(clip, character))])
    coefficients = both.encode(angles[:, :3], angles[:, 3:])
    np.testing.assert_allclose(coefficients.std(axis=0), both.sigma, rtol=1e-6)
    np.testing.assert_allclose(coefficients.mean(axis=0), both.centre, atol=1e-9)


def test_mirror_images_are_as_likely_as_the_poses(character: Character, clip: MotionClip):
    symmetric = train([clip], character, name="x", size=8)
    image = mirror(clip, character)
    error = []
    for each in (clip, image):
        both = pose_angles(each)
        _, angles = symmetric.decode(symmetric.encode(both[:, :3], both[:, 3:]))
        error.append(float(np.mean(np.abs(angles - both[:, 3:]))))
    assert error[0] == pytest.approx(error[1], rel=1e-6)


def test_training_refuses_what_cannot_be(character: Character, clip: MotionClip):
    with pytest.raises(PriorError, match="no clips"):
        train([], character, name="x")
    with pytest.raises(PriorError, match="allowed is more than 0"):
        train([clip], character, name="x", variance=0.0)
    with pytest.raises(PriorError, match="components; these clips allow"):
        train([clip], character, name="x", size=1000)


def test_provenance_names_the_clips(character: Character, clip: MotionClip):
    known = replace(clip, provenance={"file": "swing.bvh", "sha256": "ab", "unit": "m"})
    inside = train([known], character, name="x").provenance
    assert inside["clips"] == [{"name": "swing", "seconds": 2.0, "file": "swing.bvh", "sha256": "ab"}]
    assert inside["mirrored"] is True


def test_identity_prior_is_the_angles_themselves(character: Character):
    prior = load_prior("none", character, spread_rad=0.2)
    assert isinstance(prior, IdentityPrior)
    assert prior.size == 38
    np.testing.assert_array_equal(prior.sigma, np.full(38, 0.2))
    vector, angles = np.array([0.1, 0.2, 0.3]), np.linspace(-1, 3.5, 35)
    decoded = prior.decode(prior.encode(vector, angles))
    np.testing.assert_array_equal(decoded[0], vector)
    np.testing.assert_array_equal(decoded[1], angles)


def test_file_round_trip_in_single_precision(prior: PosePrior, character: Character, tmp_path: Path):
    save_prior(tmp_path / "swing.npz", prior)
    again = read_prior(tmp_path / "swing.npz", character)
    assert (again.name, again.hinge_names, dict(again.provenance)) == (
        "swing",
        prior.hinge_names,
        dict(prior.provenance),
    )
    np.testing.assert_allclose(again.basis, prior.basis, atol=1e-6)
    coefficients = prior.sigma * np.random.default_rng(0).normal(size=(3, prior.size))
    np.testing.assert_allclose(again.decode(coefficients)[1], prior.decode(coefficients)[1], atol=1e-5)


def test_damaged_and_foreign_files_are_refused(prior: PosePrior, character: Character, tmp_path: Path):
    path = tmp_path / "prior.npz"
    save_prior(path, prior)
    whole = path.read_bytes()
    for content in (b"", b"PK\x03\x04", whole[: len(whole) // 2], b"junk"):
        path.write_bytes(content)
        with pytest.raises(PriorError, match=r"prior\.npz"):
            read_prior(path, character)
    np.savez(path, format=1, basis=np.zeros((2, 2)))
    with pytest.raises(PriorError, match="this version reads format 2"):
        read_prior(path, character)
    np.savez(path, format=2, basis=np.zeros((2, 2)))
    with pytest.raises(PriorError, match="is missing"):
        read_prior(path, character)
    np.savez(path, format=np.array([{}], dtype=object), hinge_names="x")
    with pytest.raises(PriorError, match="not a readable prior"):
        read_prior(path, character)
    other = replace(prior, hinge_names=("tail.wag", *prior.hinge_names[1:]))
    save_prior(path, other)
    with pytest.raises(PriorError, match=r"tail\.wag.*train one for this character"):
        read_prior(path, character)


def test_truncated_prior_keeps_the_first_components(prior: PosePrior):
    small = prior.truncated(0.5)
    assert 1 <= small.size < prior.size
    np.testing.assert_array_equal(small.basis, prior.basis[:, : small.size])


def test_unknown_priors_are_refused_with_the_known_names(character: Character, tmp_path: Path):
    with pytest.raises(PriorError, match="no prior called 'wlak'; allowed are identity, none"):
        load_prior("wlak", character)
    with pytest.raises(PriorError, match="no such file"):
        load_prior(tmp_path / "absent.npz", character)


def test_shipped_priors_load_and_leave_out_what_their_name_says(character: Character):
    names = shipped_priors()
    assert {"all", "walk", "all-but-walk", "all-but-cartwheel"} <= set(names)
    clips: dict[str, set[str]] = {}
    for name in names:
        prior = load_prior(name, character)
        assert isinstance(prior, PosePrior)
        clips[name] = {clip["name"].removeprefix("humanoid3d_") for clip in prior.provenance["clips"]}
        assert prior.provenance["variance"] >= 0.99
        recorded = [clip for clip in prior.provenance["clips"] if clip["name"].startswith("humanoid3d_")]
        assert all(len(clip["sha256"]) == 64 for clip in recorded)
    for name, inside in clips.items():
        base, but, out = name.partition("-but-")
        if but:
            assert out in clips[base]
            assert inside == clips[base] - {out}
        if base == "all" and but:
            assert len(inside) == 14
