"""What a user can say of a motion file: `--unit`, `--up`, `--joint-map`, and `--fps` for a rate that cannot be true."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from conftest import Run


@pytest.fixture
def bones(walk_bvh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A walk whose joints are numbered, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    numbers: dict[str, str] = {}
    text = re.sub(
        r"(ROOT|JOINT) (\w+)",
        lambda match: f"{match[1]} {numbers.setdefault(match[2], f'Bone{len(numbers)}')}",
        walk_bvh.read_text(),
    )
    Path("bones.bvh").write_text(text)
    return Path("bones.bvh")


def test_an_inspection_says_what_was_inferred_and_writes_a_joint_map_that_is_read_back(run: Run, bones: Path) -> None:
    ran = run("inspect", bones, "--json")
    assert ran.code == 0, ran.err
    said = ran.json
    assert (said["unit"], said["up"], said["facing"], said["fps"], said["said"]) == ("cm", "y", "+z", 30.0, [])
    assert set(said["joints_by"].values()) == {"shape"}
    assert "found by the skeleton's shape" in said["warnings"][0]
    path = Path("inspect/bones/joint-map.toml")
    assert tomllib.loads(path.read_text())["left_knee"] == said["joints"]["left knee"]
    head = said["joints"]["head"]
    path.write_text(path.read_text().replace(f'neck = "{said["joints"]["neck"]}"', f'neck = "{head}"'))
    edited = path.read_text()
    ran = run("inspect", bones, "--joint-map", path, "--unit", "0.0101", "--up", "y", "--overwrite")
    assert ran.code == 0, ran.err
    for text in (
        "0.0101 m, as stated", "y, as stated", "+z", f"{head} (by the joint map)", f"--joint-map {path}", "--unit 0.0101", "--up y",
    ):  # fmt: skip
        assert text in ran.out
    assert path.read_text() == edited, "what a user wrote is not replaced"


def test_joints_that_nothing_tells_are_left_to_the_user(run: Run, bones: Path) -> None:
    text = bones.read_text()
    tail = "\nROOT Tail\n{\nOFFSET 0 0 0\nCHANNELS 1 Xrotation\n}\nMOTION\nFrames: 2\nFrame Time: 0.02\n1\n2\n"
    Path("tail.bvh").write_text(text[: text.index("ROOT")] + tail)
    ran = run("inspect", "tail.bvh")
    ran.refused("tail.bvh: no joint found for left hip", "Tail", "fill in inspect/tail/joint-map.toml", "--joint-map")
    written = Path("inspect/tail/joint-map.toml").read_text()
    assert '# left_knee = ""' in written
    assert tomllib.loads(written) == {}
    run("fit", "tail.bvh").refused("inspect writes a joint map")


def test_a_rate_that_cannot_be_true_is_asked_for_and_given(run: Run, bones: Path) -> None:
    bones.write_text(re.sub(r"Frame Time: \S+", "Frame Time: 1.0", bones.read_text()))
    run("inspect", bones).refused("Frame Time is 1 s", "--fps 60")
    ran = run("inspect", bones, "--fps", 50, "--json")
    assert (ran.code, ran.json["fps"], ran.json["said"]) == (0, 50.0, ["rate"])
    fit = ("fit", bones, "--budget", "tiny", "--workers", 1, "--time-range", 0, 0.2, "-o")
    run(*fit, "slow").refused("Frame Time is 1 s", "--fps 60")
    ran = run(*fit, "walk", "--fps", 50, "--json")
    assert ran.code == 0, ran.err
    assert "fps = 30.0" in Path("walk/config.toml").read_text(), "what the objective looks at is not the file's rate"
    ran = run("evaluate", "walk", "--reference", bones, "--json")
    assert ran.code == 0, ran.err


def test_a_negative_axis_is_no_option(run: Run, bones: Path) -> None:
    ran = run("inspect", bones, "--up", "-y", "--json")
    assert (ran.code, ran.json["up"]) == (0, "-y")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--unit", "furlong"), "'furlong'; allowed are m, ft"),
        (("--unit", "-1"), "'-1'; allowed are m, ft"),
        (("--up", "w"), "--up"),
        (("--joint-map", "none.toml"), "none.toml: cannot be read"),
        (("--joint-map", "bones.bvh"), "not a joint map"),
    ],
)
def test_what_is_not_allowed_is_said(run: Run, bones: Path, arguments: tuple[str, ...], says: str) -> None:
    for command in (("inspect", bones), ("train-prior", bones, "-o", "p.npz"), ("fit", bones)):
        run(*command, *arguments).refused(says)
    assert {path.name for path in Path().iterdir()} == {"bones.bvh"}


def test_a_video_has_none_of_these(run: Run, bones: Path) -> None:
    run("fit", "walk.mp4", "--joint-map", "j.toml").refused("is no motion file; --joint-map goes with those only")


def test_a_prior_is_trained_on_what_was_corrected(run: Run, bones: Path) -> None:
    Path("map.toml").write_text('left_toe = ""\n')
    ran = run("train-prior", bones, "-o", "p.npz", "--joint-map", "map.toml", "--unit", "cm", "--json")
    assert ran.code == 0, ran.err
    assert "found by the skeleton's shape" in ran.err
