"""The report holds every number, needs no network and survives hostile titles; the plots are real pictures."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mocap2ctrl.character import load_character
from mocap2ctrl.character.strength import directional_torque_limits, human_torque_limits, strength_table, without_side
from mocap2ctrl.errors import Mocap2CtrlError
from mocap2ctrl.files import replacing, write_bytes
from mocap2ctrl.report.capture import torque_warnings
from mocap2ctrl.report.clips import joint_error
from mocap2ctrl.report.data import LogRow, ReportData, StateRow, TermRow
from mocap2ctrl.report.html import report_html, write_report
from mocap2ctrl.report.pictures import state_caption
from mocap2ctrl.report.plots import plot_costs, plot_joint_error, plot_timeline, plot_torques
from mocap2ctrl.report.style import DARK, DPI, LIGHT, WIDTH_IN
from mocap2ctrl.report.torques import strongest_per_joint, torque_rows
from mocap2ctrl.types import MotionClip

VOID = {"meta", "img", "source", "br", "link", "input", "hr"}
WEIGHTS = {"likelihood": 1.0, "prior": 0.5}
HOSTILE = '<script>alert("x")</script> & co'


class Checker(HTMLParser):
    """Collects text and attributes, and fails on tags that do not close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "poster")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def parse(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return checker


def make_data(title: str = "walk") -> ReportData:
    character = load_character()
    frames, fps = 31, 30.0
    times = np.arange(frames) / fps
    position = np.stack([times, 0 * times, np.full(frames, character.standing_height_m)], axis=1)
    angles = 0.3 * np.sin(4.0 * times[:, None] + np.arange(len(character.hinges)))
    clip = MotionClip("walk", fps, position, np.tile([1.0, 0, 0, 0], (frames, 1)), angles)
    torques = np.zeros((frames, len(character.hinges)))
    torques[10, character.hinge_names.index("left_foot.dorsiflexion")] = -183.0
    torques[:, character.hinge_names.index("right_thigh.flexion")] = 29.0
    kinds = ("time", "left contact", "right contact", "hold")
    states = [
        StateRow(f"s{i}", f"pose {i}", {"hip": f"0.1{i}1", "knee": f"0.2{i}3"}, f"0.4{i}, 0.1, 0.2", f"exit {i}", kind)
        for i, kind in enumerate(kinds)
    ]
    contacts = np.stack([np.sin(9 * times) > 0, np.sin(9 * times) < 0], axis=1)
    log = [
        LogRow(100 * (i + 1), {"likelihood": 9.0 / (i + 1), "prior": 0.0}, WEIGHTS, "batch" if i < 5 else "refine")
        for i in range(9)
    ]
    return ReportData(
        title=title,
        character=character,
        reference=clip,
        simulated=replace(clip, root_position=clip.root_position + np.array([0.0, 0.02, 0.0])),
        times_s=times,
        state_index=np.minimum(np.arange(frames) // 8, 3),
        states=states,
        reference_contacts=contacts,
        simulated_contacts=~contacts,
        torques=torques,
        terms=[TermRow("likelihood", 1.5, "cm", 3.217), TermRow("contact", 10.0, "changes", 2.0)],
        log=log,
        numbers={
            "joint_error_cm": 3.44,
            "root_aligned_error_cm": 2.26,
            "silhouette_iou": None,
            "fell": True,
            "states": 4,
            "states_per_second": 3.7,
            "evaluations": 123456,
            "wall_s": 87.4,
            "core_s": 161.2,
            "seed": 77,
            "extra_number": 5.125,
        },
        provenance={
            "version": "9.8.7",
            "command": f"mocap2ctrl fit {HOSTILE}",
            "input_sha256": "ab" * 32,
            "prior": "identity",
        },
        warnings=["The prior contains the clip.", HOSTILE],
        next_commands=[("mocap2ctrl view captures/walk", "look at it")],
    )


@pytest.fixture(scope="module")
def data() -> ReportData:
    return make_data(HOSTILE)


@pytest.fixture(scope="module")
def html(data: ReportData) -> str:
    return report_html(data)


def test_report_contains_every_number(html: str, data: ReportData) -> None:
    text = " ".join(" ".join(parse(html).text).split())
    for expected in ("3.4", "2.3", "3.7", "123,456", "87", "161", "77", "5.125", "183.0", "29.0", "9.8.7", "ab" * 32):
        assert expected in text, expected
    for state in data.states:
        for value in (state.name, state.target, state.exit, state.balance, *state.alpha.values()):
            assert value in text, value
    for expected in (
        "likelihood",
        "1.5",
        "3.217",
        "4.825",
        "contact",
        "24.83",
        "mocap2ctrl view captures/walk",
        "look at it",
    ):
        assert expected in text, expected
    assert "fell yes" in text
    assert "silhouette overlap –" in text


def test_report_needs_no_network_and_has_everything_inside(html: str) -> None:
    links = parse(html).links
    assert links
    assert all(link.startswith("data:") for link in links)
    assert sum(link.startswith("data:video/mp4") for link in links) == 1
    assert sum(link.startswith("data:image/png") for link in links) == 1 + 2 * 4
    without_data = re.sub(r"data:[a-z0-9/]+;base64,[A-Za-z0-9+/=]+", "", html)
    assert not re.search(r"https?:|//[a-z]|url\(|@import|<script|<link", without_data)


def test_hostile_text_is_escaped(html: str) -> None:
    checker = parse(html)
    assert "script" not in checker.tags
    assert html.count("&lt;script&gt;") >= 4
    assert HOSTILE in "".join(checker.text)


def test_report_warns_about_torques_beyond_human(html: str, data: ReportData) -> None:
    row = re.search(r"<tr><th>ankle plantarflexion.*?</tr>", html)
    assert row
    assert 'class="n beyond">1.50' in row[0]
    hip = re.search(r"<tr><th>hip internal rotation.*?</tr>", html)
    assert hip
    assert "–" in hip[0]
    assert "beyond" not in hip[0]


def test_report_is_written_whole_or_not_at_all(data: ReportData, tmp_path: Path) -> None:
    video = tmp_path / "overlay.mp4"
    video.write_bytes(b"moving pictures")
    path = tmp_path / "report.html"
    write_report(path, data, video=video)
    assert path.read_text("utf-8").endswith("</html>")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["overlay.mp4", "report.html"]
    with pytest.raises(FileNotFoundError):
        write_report(tmp_path / "other.html", data, video=tmp_path / "missing.mp4")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["overlay.mp4", "report.html"]


def test_report_without_log_terms_and_warnings() -> None:
    video = Path(__file__)
    bare = replace(make_data(), log=(), terms=(), warnings=(), next_commands=(), numbers={})
    html = report_html(bare, video=video)
    parse(html)
    assert "Cost terms" not in html
    assert "Please note" not in html
    assert "What next" not in html


def test_a_single_frame_is_enough_for_a_report() -> None:
    data = make_data()
    first = {
        "reference": data.reference.cut(0, 1),
        "simulated": data.simulated.cut(0, 1),
        "times_s": data.times_s[:1],
        "state_index": data.state_index[:1],
        "reference_contacts": data.reference_contacts[:1],
        "simulated_contacts": data.simulated_contacts[:1],
        "torques": data.torques[:1],
        "log": [LogRow(1, {"likelihood": np.inf, "prior": 0.0}, WEIGHTS, "batch")],
    }
    parse(report_html(replace(data, **first)))


def test_caption_names_the_active_state_and_the_error(data: ReportData) -> None:
    caption = state_caption(data, joint_error(data.character, data.reference, data.simulated))
    assert caption(0.0) == "state s0 of 4   ·   error 2.0 cm"
    assert caption(8 / 30).startswith("state s1 ")
    assert caption(9.0) == "state s3 of 4   ·   error – cm"


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_plots_are_pictures_of_the_right_width(data: ReportData, theme: object) -> None:
    error = joint_error(data.character, data.reference, data.simulated)
    contacts = {
        "reference_times_s": data.times_s,
        "reference_contacts": data.reference_contacts,
        "simulated_contacts": data.simulated_contacts,
    }
    rows = strongest_per_joint(torque_rows(data.character, data.torques))
    pictures = [
        plot_costs(data.log, theme),
        plot_joint_error(error, theme),
        plot_timeline(data.times_s, data.state_index, data.states, theme=theme, **contacts),
        plot_torques(rows, theme),
    ]
    for png in pictures:
        assert png.startswith(b"\x89PNG")
        assert int.from_bytes(png[16:20], "big") == round(WIDTH_IN * DPI)
        assert len(png) > 5000
    assert len(set(pictures)) == 4
    assert plot_joint_error(error, theme) == pictures[1]


def test_plots_leave_matplotlib_alone(data: ReportData) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    plot_costs(data.log)
    assert dict(matplotlib.rcParams) == before


def test_torque_rows_separate_directions_and_take_the_stronger_side(data: ReportData) -> None:
    rows = {row.movement: row for row in torque_rows(data.character, data.torques)}
    assert len(rows) == 2 * len({without_side(name) for name in data.character.hinge_names})
    assert rows["ankle plantarflexion"].peak == 183.0
    assert rows["ankle plantarflexion"].ratio == pytest.approx(183.0 / 122.0)
    assert rows["ankle dorsiflexion"].peak == 0.0
    assert rows["ankle plantarflexion"].percentile_95 == 0.0
    assert rows["hip flexion"].percentile_95 == pytest.approx(29.0)
    assert rows["hip flexion"].bound == pytest.approx(60.0 * 75.0 * (0.142 + 0.1))
    strongest = {row.joint: row.movement for row in strongest_per_joint(list(rows.values()))}
    assert strongest["ankle"] == "ankle plantarflexion"
    assert strongest["hip"] == "hip flexion"


def test_a_torque_is_judged_by_the_limit_of_its_own_direction() -> None:
    """Adduction of the hip has no known limit, so that of abduction says nothing about it."""
    character = load_character()
    torques = np.zeros((10, len(character.hinges)))
    thigh = character.hinge_names.index("left_thigh.abduction")
    torques[:, thigh] = -900.0
    assert torque_warnings(character, SimpleNamespace(torques=torques)) == []  # type: ignore[arg-type]
    torques[3:8, thigh] = 194.0
    (text,) = torque_warnings(character, SimpleNamespace(torques=torques))  # type: ignore[arg-type]
    assert text.startswith("in 50 % of the steps")
    assert text.endswith("hip abduction, 194 N m where a human has 97")


def test_human_limits_scale_with_mass_and_are_the_same_on_both_sides() -> None:
    character = load_character()
    limits = directional_torque_limits(character)
    names = list(character.hinge_names)
    assert np.array_equal(limits[names.index("left_shank.flexion")], [210.0, 112.0])
    for name in names:
        if name.startswith("left_"):
            twin = names.index(name.replace("left_", "right_"))
            assert np.array_equal(limits[names.index(name)], limits[twin], equal_nan=True)
    heavy = character.scaled(character.height_m, 90.0)
    assert np.allclose(directional_torque_limits(heavy), 1.2 * limits, equal_nan=True)
    assert human_torque_limits(character)[names.index("left_thigh.flexion")] == 207.0
    assert np.isnan(human_torque_limits(character)[names.index("left_thigh.internal_rotation")])


def test_every_human_limit_names_its_source_and_every_hinge_is_listed() -> None:
    table = strength_table()
    assert {without_side(name) for name in load_character().hinge_names} == set(table.hinges)
    for pair in table.hinges.values():
        for strength in pair:
            assert (strength.torque is None) == (strength.source == "")
            assert strength.torque is None or 5.0 < strength.torque < 400.0


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("torques", np.zeros((3, 35)), "torques has shape"),
        ("simulated_contacts", np.zeros((31, 3), bool), "simulated_contacts has shape"),
        ("state_index", np.full(31, 4), "there are 4 states"),
        ("times_s", np.zeros(31), "increase"),
    ],
)
def test_data_that_do_not_fit_together_are_refused(field: str, value: object, message: str) -> None:
    with pytest.raises(Mocap2CtrlError, match=message):
        replace(make_data(), **{field: value})


def test_unknown_exit_kinds_are_refused() -> None:
    with pytest.raises(Mocap2CtrlError, match="allowed are"):
        StateRow("1", "", {}, "", "", "whenever")


def test_atomic_write_leaves_nothing_behind_on_failure(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_bytes(path, b"first")

    def fail_half_way() -> None:
        with replacing(path) as temporary:
            temporary.write_bytes(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert path.read_bytes() == b"first"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
