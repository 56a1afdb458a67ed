"""Exported policies: the example runs them in plain MuJoCo as we do, and the files say what they hold."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from graphs import gait

from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.graph.build import build_graph
from mocap2ctrl.graph.fragments import ControlGraph, FeedbackPolicy
from mocap2ctrl.graph.planning import PathPlanner
from mocap2ctrl.graph.skills import make_skill
from mocap2ctrl.samcon.performer import RAGDOLL
from mocap2ctrl.samcon.policy_export import FILES, export_policy
from mocap2ctrl.samcon.run import run_graph
from mocap2ctrl.simulation.pd_gains import pd_gains

PLAYER = Path(__file__).resolve().parents[2] / "docs" / "play_policy.py"
WITHOUT_US = (
    "import runpy, sys; sys.modules['mocap2ctrl'] = None; sys.argv = sys.argv[1:]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


@pytest.fixture(scope="module")
def body() -> Character:
    return load_character()


@pytest.fixture(scope="module")
def graph(body: Character) -> ControlGraph:
    """A walk with random feedback that is strong enough to matter, and gives up after 0.9 s."""
    rng = np.random.default_rng(7)
    made = build_graph([make_skill("walk", gait(body), body)], [], body, gains="stunts").graph
    policies = {
        name: FeedbackPolicy(rng.normal(0, 0.012, (11, 18)), rng.normal(0, 0.02, 11), np.full(11, 0.01))
        for name in made.fragments
    }
    policies["walk/9"] = replace(policies["walk/9"], offset=np.full(11, 1.4))
    waits = {"walk/2": "left_foot", "walk/5": "right_foot", "walk/7": "left_foot"}
    return replace(
        made,
        fragments={n: replace(f, policy=policies[n], touchdown=waits.get(n)) for n, f in made.fragments.items()},
    )


@pytest.fixture(scope="module")
def exported(graph: ControlGraph, body: Character, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy") / "new"
    assert [path.name for path in export_policy(graph, body, folder)] == list(FILES)
    return folder


def test_the_example_does_what_we_do(exported: Path, graph: ControlGraph, body: Character, tmp_path: Path) -> None:
    """In another process that cannot import us: features, feedback, servos and steps, until the walk falls, and that it does."""
    out = tmp_path / "trajectory.npy"
    words = [sys.executable, "-c", WITHOUT_US, PLAYER, exported, "--seconds", "1.5", "-o", out]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    (done,) = run_graph(graph, body, [PathPlanner(graph, ["walk"])], 1.5)
    ours = np.concatenate([done.clip.root_position, done.clip.root_orientation, done.clip.angles], axis=1)
    theirs = np.load(out)[::2]
    fell = next(entry.at_s for entry in done.performed if entry.fragment == RAGDOLL)
    nominal = [round(graph.fragments[e.pose].duration_s / 0.005) for e in done.performed]
    waited = [e.steps - n for e, n in zip(done.performed, nominal, strict=True) if graph.fragments[e.pose].touchdown]
    assert min(waited) < 0 < max(waited)  # a foot came down early, another late or not at all
    assert f"fell at {fell:.2f} s" in ran.stdout
    assert len(theirs) == round(100 * fell) + 1
    np.testing.assert_allclose(theirs, ours[: len(theirs)], atol=1e-7)
    still = replace(graph, fragments={n: replace(f, policy=None) for n, f in graph.fragments.items()})
    (without,) = run_graph(still, body, [PathPlanner(still, ["walk"])], 1.5)
    assert np.max(np.abs(without.clip.angles - done.clip.angles)[: len(theirs)]) > 0.1  # the feedback mattered


def test_files_hold_all_and_say_what(exported: Path, graph: ControlGraph, body: Character) -> None:
    told = json.loads((exported / "policy.json").read_text("utf-8"))
    assert (told["format"], told["version"]) == ("mocap2ctrl policy", 1)
    assert (len(told["state"]), len(told["action"])) == (18, 11)
    assert told["state"][2] == {"name": "root_height", "unit": "m", "meaning": "of the root's origin above the ground"}
    assert told["action"][3]["name"] == "left_thigh.flexion"
    with np.load(exported / "policy.npz") as arrays:
        named = {name for names in told["arrays"] for name in names.split(", ")} | {"learned", "foot_points"}
        assert set(arrays.files) == named
        fragments = list(graph.fragments.values())
        assert arrays["fragment"].tolist() == [fragment.name for fragment in fragments]
        for k, fragment in enumerate(fragments):
            assert fragment.policy is not None
            rows = slice(*arrays["first_target"][k : k + 2])
            np.testing.assert_array_equal(arrays["targets"][rows], fragment.targets)
            np.testing.assert_array_equal(arrays["gain"][k], fragment.policy.gain)
            np.testing.assert_array_equal(arrays["offset"][k], fragment.policy.offset)
        assert len(arrays["edges"]) == len(fragments)


def test_the_model_has_the_servos_gains_and_bounds(exported: Path, body: Character) -> None:
    model = mujoco.MjModel.from_xml_path(str(exported / "character.xml"))
    servo = pd_gains(body, "stunts")
    np.testing.assert_array_equal(model.actuator_gainprm[:, 0], servo.stiffness)
    np.testing.assert_array_equal(model.actuator_biasprm[:, 1:3], np.stack([-servo.stiffness, -servo.damping], axis=1))
    np.testing.assert_array_equal(model.actuator_forcerange[:, 1], body.torque_bounds)
    assert model.opt.timestep == 0.005


def test_the_player_says_what_it_misses(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, PLAYER, tmp_path / "nowhere"], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 2
    assert "holds no policy.npz" in ran.stderr
    assert "Traceback" not in ran.stderr
