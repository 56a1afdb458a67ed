"""Writes what a user looks at into a capture folder: motion files, overlay video and report."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.character.strength import directional_torque_limits
from mocap2ctrl.control.controller import Controller, ControlState
from mocap2ctrl.evaluation.export import export_motion, performed
from mocap2ctrl.evaluation.metrics import Evaluation, judged_seconds
from mocap2ctrl.evaluation.replay import Replay
from mocap2ctrl.fit.capture import LOG, REPORT, Capture
from mocap2ctrl.fit.incremental import OPENED
from mocap2ctrl.motion.clips import resample
from mocap2ctrl.motion.contacts import foot_contacts
from mocap2ctrl.report.data import LogRow, ReportData, StateRow, TermRow, Value
from mocap2ctrl.report.html import write_report
from mocap2ctrl.report.pictures import write_report_overlay
from mocap2ctrl.report.scene import Footage
from mocap2ctrl.report.torques import torque_rows
from mocap2ctrl.report.video_facts import video_evidence
from mocap2ctrl.types import MotionClip

EXIT_KINDS = {"never": "hold", "time": "time", "left": "left contact", "right": "right contact"}
REPORT_FPS = 60.0
TERM_UNITS = {
    "markers": "cm²",
    "velocity": "cm²",
    "stability": "cm²",
    "prior": "spreads",
    "contact": "changes",
    "silhouette": "0 to 2",
    "keypoints": "cm",
}


def write_outputs(
    capture: Capture,
    evaluation: Evaluation,
    run: Replay,
    numbers: Mapping[str, Value],
    warnings: Sequence[str],
    *,
    footage: Footage | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Writes `motion.npz`, `motion.bvh`, `overlay.mp4` and `report.html` of a finished capture.

    Args:
        capture: with its controller.
        evaluation: of `run`.
        run: the controller's simulation, recorded at 120 frames a second.
        numbers: headline numbers beside the evaluation's: evaluations, wall_s, core_s.
        warnings: sentences for the report.
        footage: the frames of a video's capture; without them its silhouettes are shown.
        notes: what was understood of a video, sentences for the report.
    """
    end = min(len(run.clip), round(judged_seconds(capture.reference) * run.clip.fps) + 1)
    simulated = replace(run.clip.cut(0, end), name=capture.reference.name)
    written = performed(capture, run.clip, seconds=judged_seconds(capture.reference))
    for name in ("motion.npz", "motion.bvh"):
        export_motion(capture.folder / name, written, capture.character)
    data = report_data(capture, evaluation, run, simulated, numbers, warnings)
    if capture.silhouettes is not None:
        data = replace(data, video=video_evidence(capture, simulated, footage, notes))
    video = capture.folder / "overlay.mp4"
    write_report_overlay(video, data)
    write_report(capture.folder / REPORT, data, video=video)


def report_data(
    capture: Capture,
    evaluation: Evaluation,
    run: Replay,
    simulated: MotionClip,
    numbers: Mapping[str, Value],
    warnings: Sequence[str],
) -> ReportData:
    """The report's contents, as plain values; a video's evidence is not among them yet."""
    controller = capture.finished_controller()
    reference = replace(capture.reference, loop=False)
    stride = round(run.clip.fps / REPORT_FPS)
    rows = np.arange(0, len(simulated), stride)
    entries = read_log(capture.folder / LOG)
    log = log_rows(entries, capture)
    torques = run.frame_torques
    duration = max(reference.duration_s, 1e-9)
    return ReportData(
        title=capture.reference.name,
        character=capture.character,
        reference=reference,
        simulated=resample(simulated, REPORT_FPS),
        times_s=rows / run.clip.fps,
        state_index=run.state[rows],
        states=[_state_row(state, capture.character) for state in controller.states],
        reference_contacts=foot_contacts(reference, capture.character),
        simulated_contacts=run.contacts[rows],
        torques=torques[rows],
        terms=final_terms(entries, capture),
        log=log,
        numbers={
            **_accuracy(evaluation, from_video=capture.silhouettes is not None),
            "fell": evaluation.fell,
            "states": len(controller.states),
            "states_per_second": run.states_entered(duration) / duration,
            "seed": capture.config.seed,
            **numbers,
        },
        provenance=_provenance(capture, controller),
        warnings=[*warnings, *torque_warnings(capture.character, run)],
        next_commands=_next_commands(capture),
    )


def _accuracy(evaluation: Evaluation, *, from_video: bool) -> dict[str, Value]:
    """How near the controller is to its evidence; of a video, errors only where a reference is known."""
    errors: dict[str, Value] = {
        "joint_error_cm": evaluation.joint_error_cm,
        "root_aligned_error_cm": evaluation.root_aligned_error_cm,
        "source_error_cm": evaluation.source_error_cm,
    }
    if not from_video:
        return errors
    errors["track_joint_error_cm"] = evaluation.track_joint_error_cm
    keypoints = {
        "keypoint_error_px": evaluation.keypoint_error_px,
        "track_keypoint_error_px": evaluation.track_keypoint_error_px,
    }
    seen: dict[str, Value] = {
        "silhouette_iou": evaluation.silhouette_iou,
        "track_silhouette_iou": evaluation.track_silhouette_iou,
        "track_error_cm": evaluation.track_error_cm,
        **{name: value for name, value in keypoints.items() if value is not None},
        "joint_error_cm": evaluation.joint_error_cm,
    }
    return seen | {name: value for name, value in errors.items() if value is not None}


def _next_commands(capture: Capture) -> list[tuple[str, str]]:
    folder = shlex.quote(str(capture.folder))
    evaluate = [(f"mocap2ctrl evaluate {folder}", "joint error and falls, from controller.json as it stands")]
    if capture.silhouettes is not None:
        evaluate = [
            (f"mocap2ctrl evaluate {folder}", "silhouette overlap and falls, from controller.json as it stands"),
            (
                f"mocap2ctrl evaluate {folder} --reference FILE",
                "joint error too, if there is a true motion to compare with",
            ),
        ]
    return [
        *evaluate,
        (f"mocap2ctrl simulate {folder} --push 100 0 0", "push it and see"),
        (f"mocap2ctrl simulate {folder} --torque-limit 0.5", "the same with half the strength"),
    ]


def _state_row(state: ControlState, character: Character) -> StateRow:
    angles = np.degrees(state.target.angles)
    strongest = sorted(np.argsort(-np.abs(angles))[:3])
    pose = ", ".join(f"{character.hinge_names[i].replace('_', ' ')} {angles[i]:.0f}°" for i in strongest)
    exit_text = {
        "never": "holds",
        "time": f"after {state.exit.time_s:.2f} s",
        "left": f"left foot touches (at most {state.exit.time_s:.2f} s)",
        "right": f"right foot touches (at most {state.exit.time_s:.2f} s)",
    }[state.exit.kind]
    return StateRow(
        name=state.name,
        target=pose,
        alpha={group: f"{a:.3f}" for group, a in zip(character.groups, state.alpha, strict=True)},
        balance=", ".join(f"{v:.2f}" for v in state.balance) + f" ({state.swing})",
        exit=exit_text,
        exit_kind=EXIT_KINDS[state.exit.kind],
    )


def read_log(path: Path) -> list[dict[str, Any]]:
    """The entries of a `log.jsonl`; an unfinished last line is skipped."""
    entries = []
    for line in path.read_text("utf-8").splitlines():
        with suppress(json.JSONDecodeError):
            entries.append(json.loads(line))
    return entries


def log_rows(entries: Sequence[dict[str, Any]], capture: Capture) -> list[LogRow]:
    """The generations of a log; a sweep over states that are opened again is one stage."""
    rows = []
    for entry in _of_event("generation", entries):
        stage = "opened again" if entry["stage"].endswith(OPENED) else entry["stage"]
        rows.append(LogRow(entry["evaluations"], entry["terms"], _weights(entry, capture), stage))
    return rows


def final_terms(entries: Sequence[dict[str, Any]], capture: Capture) -> list[TermRow]:
    """What the controller's E is made of by a log, or, where a fit was cut short, that of the last generation."""
    for entry in (_of_event("controller", entries) or _of_event("generation", entries))[-1:]:
        weights = _weights(entry, capture)
        return [TermRow(name, weights[name], TERM_UNITS[name], value) for name, value in entry["terms"].items()]
    return []


def _of_event(event: str, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [entry for entry in entries if entry.get("event") == event]


def _weights(entry: dict[str, Any], capture: Capture) -> dict[str, float]:
    """By which an entry's terms count; logs of older versions do not tell."""
    told: dict[str, float] = entry.get("weights", {})
    return told or {name: getattr(capture.config.weights, name) for name in entry["terms"]}


def torque_warnings(character: Character, run: Replay) -> list[str]:
    """Sentences on torques that no human has."""
    limits = np.nan_to_num(directional_torque_limits(character), nan=np.inf)  # a direction is judged by its own limit
    ratio = np.stack([-run.torques, run.torques], axis=-1) / limits
    beyond = (ratio > 1.0).any(axis=(1, 2))
    if not beyond.any():
        return []
    rows = [row for row in torque_rows(character, run.torques) if row.human]
    worst = max(rows, key=lambda row: row.peak / (row.human or math.inf))
    return [
        f"in {100.0 * float(beyond.mean()):.0f} % of the steps some joint is stronger than a human's; most of all "
        f"{worst.movement}, {worst.peak:.0f} N m where a human has {worst.human:.0f}"
    ]


def _provenance(capture: Capture, controller: Controller) -> dict[str, str]:
    source = capture.reference.provenance
    known = controller.provenance
    entries = {
        "mocap2ctrl": known.get("mocap2ctrl"),
        "command": known.get("command"),
        "input": source.get("file"),
        "sha256": source.get("sha256"),
        "seed": capture.config.seed,
        "method": capture.config.method,
        "engine": capture.engine_name,
        "also in": ", ".join(capture.also_in),
        "torque scale": capture.torque_scale,
        "prior": capture.prior.name,
        "structure": controller.structure,
    }
    return {name: str(value) for name, value in entries.items() if value not in (None, "")}
