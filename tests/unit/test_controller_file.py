"""`controller.json`: what is written is read to the bit, and what a hand has spoiled is refused in one line that says where."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.control.closed_loop import run, start_vector
from mocap2ctrl.control.controller import Controller, ControlState, Exit, TargetPose, compile_program
from mocap2ctrl.control.entry_feedback import ACTIONS, EntryFeedback, deviation_size
from mocap2ctrl.control.file import controller_from_data, controller_to_data, load_controller, save_controller
from mocap2ctrl.errors import ControllerFileError
from mocap2ctrl.simulation.engine import TIME_STEP_S
from mocap2ctrl.simulation.mujoco import MujocoEngine
from mocap2ctrl.types import Array, Pose, SimState

COEFFICIENTS = 5
BODY = load_character()
"""For property tests, which take no fixtures."""

_DIRECTIONS = np.random.default_rng(1).normal(size=(COEFFICIENTS, 3 + len(BODY.hinges)))


def decode(coefficients: Array) -> tuple[Array, Array]:
    """A linear prior of five coefficients."""
    if len(coefficients) != COEFFICIENTS:
        raise ValueError("wrong number of coefficients")
    pose = coefficients @ _DIRECTIONS
    return pose[:3], pose[3:]


def example(character: Character) -> Controller:
    """All kinds of exits, swings and targets, with numbers that no short decimal equals."""
    rng = np.random.default_rng(2)
    hinges, groups = len(character.hinges), len(character.groups)

    def state(name: str, exit_: Exit, swing: str, coefficients: bool) -> ControlState:
        if coefficients:
            values = rng.normal(size=COEFFICIENTS)
            target = TargetPose(*decode(values), values)
        else:
            target = TargetPose(rng.normal(size=3), rng.normal(size=hinges))
        balance = np.array([rng.uniform(-1, 1), rng.uniform(-1, 1), rng.uniform(0, 1)])
        return ControlState(name, target, rng.uniform(0.001, 0.2, groups), balance, swing, exit_)

    feedback = EntryFeedback(
        1 / 7,
        rng.normal(size=3),
        rng.normal(size=6 + hinges),
        rng.normal(size=hinges),
        rng.normal(size=(ACTIONS, deviation_size(hinges))),
    )
    states = (
        replace(state("1", Exit("time", 1 / 3, "2"), "left", False), feedback=feedback),
        state("2", Exit("left", 0.7, "3"), "right", True),
        state("3", Exit("right", 0.1 + 0.2, "schwung ä"), "auto", False),
        state("schwung ä", Exit(), "auto", True),
    )
    orientation = rng.normal(size=4)
    pose = Pose(rng.normal(size=3), orientation / np.linalg.norm(orientation), rng.normal(size=hinges))
    start = SimState(pose, rng.normal(size=3), rng.normal(size=3), rng.normal(size=hinges))
    return Controller(states, start, heading=-np.pi / 7, prior="walk-99", provenance={"seed": 3, "clips": ["a", "b"]})


def assert_equal(a: Controller, b: Controller) -> None:
    assert (a.heading, a.prior, dict(a.provenance)) == (b.heading, b.prior, dict(b.provenance))
    assert a.structure == b.structure
    for x, y in zip(a.states, b.states, strict=True):
        assert (x.name, x.swing, x.exit) == (y.name, y.swing, y.exit)
        for name in ("alpha", "balance"):
            np.testing.assert_array_equal(getattr(x, name), getattr(y, name))
        np.testing.assert_array_equal(x.target.root_rotation, y.target.root_rotation)
        np.testing.assert_array_equal(x.target.angles, y.target.angles)
        assert (x.target.coefficients is None) == (y.target.coefficients is None)
        assert (x.feedback is None) == (y.feedback is None)
        if x.feedback is not None:
            for field in fields(x.feedback):
                np.testing.assert_array_equal(getattr(x.feedback, field.name), getattr(y.feedback, field.name))
        if x.target.coefficients is not None:
            np.testing.assert_array_equal(x.target.coefficients, y.target.coefficients)
    np.testing.assert_array_equal(start_vector(a.start), start_vector(b.start))


def test_round_trip_is_exact(tmp_path: Path, character: Character):
    path, again = tmp_path / "controller.json", tmp_path / "again.json"
    controller = example(character)
    save_controller(path, controller, character)
    loaded = load_controller(path, character, decode)
    assert_equal(controller, loaded)
    save_controller(again, loaded, character)
    assert again.read_bytes() == path.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.json", "controller.json"]


def test_a_loaded_controller_moves_to_the_bit_as_the_saved_one(
    tmp_path: Path, character: Character, engine: MujocoEngine, stepping: Controller
):
    path = tmp_path / "controller.json"
    save_controller(path, stepping, character)
    ends = [
        run(engine, compile_program([c], character, TIME_STEP_S), start_vector(c.start), 60).final
        for c in (stepping, load_controller(path, character, decode))
    ]
    np.testing.assert_array_equal(ends[0], ends[1])


@given(values=st.lists(st.floats(-7.0, 7.0), min_size=len(BODY.hinges), max_size=len(BODY.hinges)))
def test_any_angles_round_trip(values: list[float]):
    controller = example(BODY)
    state = ControlState("x", TargetPose(np.zeros(3), values), controller.states[0].alpha, np.zeros(3))
    data = json.loads(json.dumps(controller_to_data(controller.with_states([state]), BODY)))
    loaded = controller_from_data(data, BODY, decode, "c.json")
    np.testing.assert_array_equal(loaded.states[0].target.angles, values)


def test_the_file_speaks_in_names_and_units(character: Character):
    data = controller_to_data(example(character), character)
    assert data["structure"] == "⊕→1→T→2→L→3→R→schwung ä"
    assert set(data["states"][0]["alpha"]) == set(character.groups)
    assert set(data["states"][0]["target"]["angles"]) == set(character.hinge_names)
    assert data["states"][1]["exit"] == {"contact": "left", "max_s": 0.7, "to": "3"}
    assert data["states"][3]["exit"] is None
    assert data["units"]["angles"] == "rad"


def test_what_an_editor_may_leave_out(character: Character):
    data = controller_to_data(example(character), character)
    for name in ("units", "structure", "character", "provenance"):
        del data[name]
    del data["states"][3]["exit"]
    del data["states"][0]["swing"]
    loaded = controller_from_data(data, character, decode, "c.json")
    assert loaded.states[3].exit == Exit()
    assert loaded.states[0].swing == "auto"


def test_a_nearly_unit_quaternion_is_normalised(character: Character):
    data = controller_to_data(example(character), character)
    data["start"]["root_orientation_wxyz"] = [0.7071, 0.7071, 0.0, 0.0]
    q = controller_from_data(data, character, decode, "c.json").start.pose.root_orientation
    np.testing.assert_allclose(q, [np.sqrt(0.5), np.sqrt(0.5), 0, 0], atol=1e-12)


Change = Callable[[dict[str, Any]], Any]

SPOILED: dict[str, tuple[Change, str, str]] = {
    # what the hand did: change, place, what the error also says
    "unknown name": (lambda d: d.update(colour="red"), "colour", "not a known name; known are"),
    "unknown name in a state": (lambda d: d["states"][1].update(kp=3), "states[1].kp", "known are"),
    "misspelt group": (
        lambda d: d["states"][0]["alpha"].update(hipp=d["states"][0]["alpha"].pop("hip")),
        "states[0].alpha.hipp",
        "known are root, spine",
    ),
    "missing group": (lambda d: d["states"][0]["alpha"].pop("hip"), "states[0].alpha.hip", "missing; allowed is a number"),
    "misspelt hinge": (
        lambda d: d["states"][0]["target"]["angles"].update({"left_knee.flexion": 0.1}),
        "states[0].target.angles.left_knee.flexion",
        "known are",
    ),
    "alpha zero": (lambda d: d["states"][0]["alpha"].update(hip=0), "states[0].alpha.hip", "is 0; allowed is a number"),
    "alpha over one": (lambda d: d["states"][0]["alpha"].update(hip=1.5), "states[0].alpha.hip", "0.001 to 1"),
    "degrees for radians": (
        lambda d: d["start"]["angles"].update({"left_shank.flexion": 45}),
        "start.angles.left_shank.flexion",
        "is 45; allowed is a number from -7 to 7",
    ),
    "text for a number": (lambda d: d["states"][0]["alpha"].update(hip="0.1"), "states[0].alpha.hip", "'0.1'"),
    "true for a number": (lambda d: d["states"][0]["alpha"].update(hip=True), "states[0].alpha.hip", "True"),
    "list for an object": (lambda d: d["states"][0].update(alpha=[0.1]), "states[0].alpha", "expected an object"),
    "text for a state": (lambda d: d["states"].append("stand"), "states[4]", "expected an object"),
    "number for a name": (lambda d: d["states"][0].update(name=1), "states[0].name", "a text"),
    "balance of two": (lambda d: d["states"][0].update(balance=[0, 0]), "states[0].balance", "3 numbers"),
    "negative theta_3": (lambda d: d["states"][0].update(balance=[0, 0, -0.1]), "states[0].balance", "from 0 to 1"),
    "balance NaN": (lambda d: d["states"][0].update(balance=[0, 0, float("nan")]), "states[0].balance", "3 numbers"),
    "unknown swing": (lambda d: d["states"][0].update(swing="Left"), "states[0].swing", "left or right"),
    "exit to nowhere": (lambda d: d["states"][0]["exit"].update(to="9"), "states[0].exit.to", "a state's name"),
    "exit without to": (lambda d: d["states"][0]["exit"].pop("to"), "states[0].exit.to", "missing"),
    "exit without time": (lambda d: d["states"][0]["exit"].pop("time"), "states[0].exit.time", "missing"),
    "exit after no time": (lambda d: d["states"][0]["exit"].update(time=0), "states[0].exit.time", "0.001"),
    "contact without max_s": (lambda d: d["states"][1]["exit"].pop("max_s"), "states[1].exit.max_s", "missing"),
    "contact of a hand": (lambda d: d["states"][1]["exit"].update(contact="hand"), "states[1].exit.contact", "left or right"),
    "time and contact": (lambda d: d["states"][1]["exit"].update(time=0.2), "states[1].exit.time", "contact"),
    "time with max_s": (lambda d: d["states"][0]["exit"].update(max_s=0.2), "states[0].exit.max_s", "known are time, to"),
    "exit as text": (lambda d: d["states"][0].update(exit="2"), "states[0].exit", "expected an object"),
    "no states": (lambda d: d.pop("states"), "states", "at least one state"),
    "empty states": (lambda d: d.update(states=[]), "states", "at least one state"),
    "one name twice": (lambda d: d["states"][1].update(name="1"), "states", "differ"),
    "missing target": (lambda d: d["states"][0].pop("target"), "states[0].target", "missing"),
    "missing angles": (lambda d: d["states"][0]["target"].pop("angles"), "states[0].target.angles", "missing"),
    "missing start": (lambda d: d.pop("start"), "start", "missing"),
    "missing start velocity": (lambda d: d["start"].pop("root_velocity"), "start.root_velocity", "missing"),
    "missing heading": (lambda d: d.pop("heading"), "heading", "missing"),
    "missing prior": (lambda d: d.pop("prior"), "prior", "missing"),
    "angles beside coefficients": (
        lambda d: d["states"][1]["target"].update(angles={}),
        "states[1].target.angles",
        "known are coefficients",
    ),
    "one coefficient too few": (
        lambda d: d["states"][1]["target"]["coefficients"].pop(),
        "states[1].target.coefficients",
        "do not fit the prior",
    ),
    "coefficients as text": (lambda d: d["states"][1]["target"].update(coefficients="x"), "states[1].target", "numbers"),
    "long quaternion": (
        lambda d: d["start"].update(root_orientation_wxyz=[1, 1, 0, 0]),
        "start.root_orientation_wxyz",
        "length 1",
    ),
    "wrong version": (lambda d: d.update(version=2), "version", "is 2; allowed is 1"),
    "no version": (lambda d: d.pop("version"), "version", "missing"),
    "version true": (lambda d: d.update(version=True), "version", "is True"),
    "other format": (lambda d: d.update(format="mocap2ctrl graph"), "format", "'mocap2ctrl controller'"),
    "name with a line break": (lambda d: d["states"][0].update({"na\nme": 1}), "states[0]", "known are"),
    "state name with a line break": (
        lambda d: d["states"][1].update(name="a\nb"),
        "states[1].name",
        "a text in one line",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SPOILED)
def test_a_spoiled_file_is_refused_with_its_place(tmp_path: Path, character: Character, case: str):
    change, place, message = SPOILED[case]
    data = copy.deepcopy(controller_to_data(example(character), character))
    change(data)
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(data), "utf-8")
    with pytest.raises(ControllerFileError) as caught:
        load_controller(path, character, decode)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(f"{path}: {place}")
    assert message in text


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999", "1" + "0" * 400])
@pytest.mark.parametrize("place", ["heading", "states[0].alpha.hip", "start.root_velocity.x", "states[0].exit.time"])
def test_numbers_that_are_none_are_refused(tmp_path: Path, character: Character, literal: str, place: str):
    data = controller_to_data(example(character), character)
    inner: Any = data
    *path_to, last = place.replace("[0]", ".0").split(".")
    for key in path_to:
        inner = inner[int(key) if key.isdigit() else key]
    inner[last] = "@@"
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(data).replace('"@@"', literal), "utf-8")
    with pytest.raises(ControllerFileError) as caught:
        load_controller(path, character, decode)
    assert str(caught.value).startswith(f"{path}: {place}: is ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"states:\n  - name: 1\n", "not valid JSON"),
        (b'{"format": "mocap2ctrl controller",}', "not valid JSON"),
        (b"[1, 2]", "expected an object"),
        (b"null", "expected an object"),
        (b"\xff\xfe\x00", "cannot be read"),
        (b"[" * 200_000, "not valid JSON"),
        (b"1" * 10_000, "not valid JSON"),
        (b'{"version": 1, "version": 1}', "'version' stands twice"),
    ],
)
def test_what_is_no_controller_is_refused(tmp_path: Path, character: Character, content: bytes, message: str):
    path = tmp_path / "controller.json"
    path.write_bytes(content)
    with pytest.raises(ControllerFileError, match=message) as caught:
        load_controller(path, character, decode)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_truncated_file_is_refused(tmp_path: Path, character: Character):
    path = tmp_path / "controller.json"
    save_controller(path, example(character), character)
    whole = path.read_bytes()
    for share in (0.1, 0.5, 0.9, 0.999):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(ControllerFileError, match="not valid JSON"):
            load_controller(path, character, decode)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path, character: Character):
    with pytest.raises(ControllerFileError, match="no such file"):
        load_controller(tmp_path / "none.json", character, decode)
    with pytest.raises(ControllerFileError, match="cannot be read"):
        load_controller(tmp_path, character, decode)


def test_saving_refuses_numbers_that_json_lacks_and_keeps_the_old_file(tmp_path: Path, character: Character):
    path = tmp_path / "controller.json"
    path.write_text("old")
    controller = example(character)
    state = controller.states[0]
    endless = ControlState(
        state.name, state.target, state.alpha, state.balance, state.swing, Exit("time", float("inf"), "1")
    )
    with pytest.raises(ValueError, match="JSON"):
        save_controller(path, controller.with_states([endless]), character)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1
