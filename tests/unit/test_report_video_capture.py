"""The report of a fit to a video: overlaps, facts, and no error without a reference."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from porch import (
    BLIND,
    FPS,
    GIRTH,
    PICTURE,
    footage_from,
    performer_of,
    silhouettes_of,
    track_of,
)
from tiny_video import replay_of

from mocap2ctrl.character.model import Character
from mocap2ctrl.control.controller import Controller, ControlState, Exit, TargetPose
from mocap2ctrl.errors import Mocap2CtrlError
from mocap2ctrl.evaluation.replay import Replay
from mocap2ctrl.evaluation.video import evaluate_video
from mocap2ctrl.fit.capture import Capture, save_inputs, save_result
from mocap2ctrl.fit.config import budget
from mocap2ctrl.fit.video import video_config
from mocap2ctrl.motion.clips import resample, state
from mocap2ctrl.prior.choose import load_prior
from mocap2ctrl.report.capture import report_data, write_outputs
from mocap2ctrl.report.performer import Performer
from mocap2ctrl.report.pictures import video_caption
from mocap2ctrl.report.plots import plot_overlap
from mocap2ctrl.report.scene import Footage, Scene
from mocap2ctrl.report.style import DARK, LIGHT
from mocap2ctrl.report.video_facts import camera_facts, limb_factors, trunk_build, video_evidence
from mocap2ctrl.report.video_overlay import overlay_size
from mocap2ctrl.report.video_sheet import STRIP_HEIGHT_PX
from mocap2ctrl.track.body import reshaped
from mocap2ctrl.types import MotionClip, Silhouettes

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import make_pictures


@pytest.fixture(scope="module")
def track(character: Character) -> MotionClip:
    return track_of(character)


@pytest.fixture(scope="module")
def silhouettes(character: Character) -> Silhouettes:
    return silhouettes_of(character)


@pytest.fixture(scope="module")
def footage(character: Character) -> Footage:
    return footage_from(character)


@pytest.fixture(scope="module")
def performer(character: Character) -> Performer:
    return performer_of(character)


@pytest.fixture(scope="module")
def capture(
    tmp_path_factory: pytest.TempPathFactory, character: Character, track: MotionClip, silhouettes: Silhouettes
) -> Capture:
    """Two states that hold the track's first pose, with what a tracker tells."""
    folder = tmp_path_factory.mktemp("porch")
    told = {"energy": 4321.0, "parts": {"outline": 4000.0, "prior": 321.0}, "hypotheses": [4321.0, 4555.0]}
    line = {
        "event": "generation",
        "evaluations": 9,
        "stage": "incremental 1",
        "terms": {"silhouette": 0.3, "markers": 4.0},
    }
    (folder / "log.jsonl").write_text(json.dumps(line) + "\n")
    rates, pose = np.full(len(character.groups), 0.1), TargetPose(np.zeros(3), track.angles[0])
    states = [
        ControlState("1", pose, rates, np.zeros(3), exit=Exit("time", 0.3, "2")),
        ControlState("2", pose, rates, np.zeros(3)),
    ]
    return Capture(
        folder=folder,
        character=character,
        prior=load_prior("identity", character),
        reference=replace(track, provenance={"track": told}),
        source_points=np.full((len(track), len(character.evaluation_points), 3), np.nan),
        config=video_config(budget("quick")),
        run={"engine": "mujoco"},
        controller=Controller(tuple(states), state(track, 0)),
        silhouettes=silhouettes,
        girth=GIRTH,
    )


@pytest.fixture(scope="module")
def run(character: Character, performer: Performer) -> Replay:
    """A simulation that went as `performer` goes."""
    dense = resample(performer.clip, 120.0)
    return replace(
        replay_of(character, dense),
        contacts=np.zeros((len(dense), 2), bool),
        state=(np.arange(len(dense)) > 36).astype(np.int64),
        torques=np.zeros((len(dense), len(character.hinges))),
    )


def text_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL))).split())


def test_report_of_a_video_tells_overlap_and_no_error_without_a_reference(
    capture: Capture, run: Replay, footage: Footage
) -> None:
    evaluation = evaluate_video(capture, run)
    write_outputs(capture, evaluation, run, {"wall_s": 61.0}, ["lighting"], footage=footage, notes=["plate found"])
    html = (capture.folder / "report.html").read_text("utf-8")
    text = text_of(html)
    assert f"silhouette overlap {evaluation.silhouette_iou:.3f}" in text
    assert f"the track's overlap {evaluation.track_silhouette_iou:.3f}" in text
    assert "distance from the track 2.0 cm controller to track: not an accuracy" in text
    assert "joint error – no reference was given" in text
    assert "Without a reference only the overlap with the silhouettes is known" in text
    for told in (
        "girth 1.15: +0.9 cm",
        "legs 1.00 ×",
        "4,321",
        "outline 4,000",
        "2, of energy",
        "lighting",
        "plate found",
    ):
        assert told in text, told
    for told in ("96 × 88 pixels", "1 of 16", "5.7° down", "320 × 240", "0.60 s of video", "--reference FILE"):
        assert told in text, told
    assert "root-aligned" not in text
    assert all(link.startswith("data:") for link in re.findall(r'(?:src|srcset)="([^"]*)"', html))
    with av.open(str(capture.folder / "overlay.mp4")) as container:
        frames = list(container.decode(video=0))
        assert (frames[0].width, frames[0].height) == overlay_size(PICTURE.size)
        assert len(frames) == round(0.6 * FPS) + 1
        assert float(container.streams.video[0].average_rate) == FPS
    assert (capture.folder / "motion.bvh").exists()


def test_report_of_a_video_tells_the_error_where_a_reference_was_given(capture: Capture, run: Replay) -> None:
    evaluation = replace(
        evaluate_video(capture, run), joint_error_cm=7.31, root_aligned_error_cm=5.28, track_joint_error_cm=6.44
    )
    write_outputs(capture, evaluation, run, {}, ())
    text = text_of((capture.folder / "report.html").read_text("utf-8"))
    assert "joint error 7.3 cm 15 joints" in text
    assert "root-aligned error 5.3 cm" in text
    assert "the track's joint error 6.4 cm" in text
    assert "no reference" not in text.lower()
    assert "without a reference" not in text.lower()


def test_caption_tells_the_overlap_of_that_frame(
    capture: Capture, run: Replay, footage: Footage, performer: Performer
) -> None:
    data = report_data(capture, evaluate_video(capture, run), run, run.clip, {}, ())
    video = video_evidence(capture, performer.clip, footage, ())
    caption = video_caption(data, video)
    assert caption(0.0) == f"state 1 of 2   ·   IoU {video.simulated_iou[0]:.2f}"
    assert caption(BLIND / FPS) == "state 1 of 2   ·   IoU –"
    assert caption(0.9) == "state 2 of 2   ·   IoU –"
    assert np.allclose(np.delete(video.track_iou, BLIND), 1.0)
    assert 0.5 < np.nanmean(video.simulated_iou) < 0.95
    with pytest.raises(Mocap2CtrlError, match=r"simulated_iou has shape \(3,\)"):
        replace(video, simulated_iou=np.zeros(3))


def test_factors_of_the_body_are_those_of_the_tracker(character: Character) -> None:
    other = reshaped(character, np.array([1.3, 1.05, 0.94, 1.02, 1.1]))
    assert limb_factors(other) == pytest.approx({"legs": 1.05, "arms": 0.94, "trunk": 1.02})
    assert trunk_build(other) == pytest.approx(1.1)


def test_camera_facts_of_masks_alone(silhouettes: Silhouettes, track: MotionClip) -> None:
    facts = camera_facts(Scene(silhouettes), track)
    assert "frames" not in facts
    assert facts["camera's height"] == "1.32 m"
    assert facts["distance to the person"] == "3.2 m"
    nobody = Scene(replace(silhouettes, masks=np.zeros_like(silhouettes.masks)))
    assert camera_facts(nobody, track)["person's height"] == "nobody seen"


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_plot_of_overlap_has_gaps_and_survives_blindness(theme: object) -> None:
    times, values = np.arange(5) / 25.0, np.array([0.8, 0.9, np.nan, 0.7, 0.8])
    assert plot_overlap(times, values, values + 0.05, theme).startswith(b"\x89PNG")
    nothing = np.full(5, np.nan)
    assert plot_overlap(times, nothing, nothing, theme).startswith(b"\x89PNG")
    assert plot_overlap(times[:1], values[:1], values[:1], theme).startswith(b"\x89PNG")


def test_picture_for_a_page_is_made_from_a_capture_alone(capture: Capture, tmp_path: Path) -> None:
    save_inputs(capture)
    save_result(capture)
    path = tmp_path / "video.png"
    assert make_pictures.main([str(capture.folder), "-o", str(path), "--columns", "2"]) == 0
    picture = cv2.imread(str(path))
    assert picture.shape[0] > 2 * STRIP_HEIGHT_PX
    assert make_pictures.main([str(tmp_path), "-o", str(path)]) == 2
