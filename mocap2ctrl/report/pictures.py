"""Overlay video, its captions and the sheet of stills of a report, for motion capture and for video."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from mocap2ctrl.report.clips import JointError, joint_error
from mocap2ctrl.report.contact_sheet import contact_sheet
from mocap2ctrl.report.data import ReportData, VideoEvidence
from mocap2ctrl.report.overlay import write_overlay
from mocap2ctrl.report.video_overlay import write_video_overlay
from mocap2ctrl.report.video_sheet import video_sheet

DASH = "–"
Caption = Callable[[float], str]


def write_report_overlay(path: str | os.PathLike[str], data: ReportData) -> None:
    """Write the overlay video of a fit: two bodies, or footage and a body."""
    if data.video is not None:
        write_video_overlay(path, data.video.scene, data.performer, caption=video_caption(data, data.video))
        return
    error = joint_error(data.character, data.reference, data.simulated)
    write_overlay(path, data.character, data.reference, data.simulated, caption=state_caption(data, error))


def report_sheet(data: ReportData) -> bytes:
    """Return stills of a fit as PNG."""
    if data.video is not None:
        return video_sheet(data.video.scene, data.performer)
    return contact_sheet(data.character, data.reference, data.simulated)


def state_caption(data: ReportData, error: JointError) -> Caption:
    """Return the caption of the overlay video at a time: the active state and the joint error."""

    def caption(time_s: float) -> str:
        value = error.at(time_s)
        return f"{_state(data, time_s)}   ·   error {DASH if value is None else f'{value:.1f}'} cm"

    return caption


def video_caption(data: ReportData, video: VideoEvidence) -> Caption:
    """Return the caption of a video's overlay at a time: the active state and the overlap with that frame's silhouette."""

    def caption(time_s: float) -> str:
        over = time_s > video.scene.duration_s + 0.5 / video.scene.silhouettes.fps
        value = np.nan if over else float(video.simulated_iou[video.scene.frame_at(time_s)])
        return f"{_state(data, time_s)}   ·   IoU {f'{value:.2f}' if np.isfinite(value) else DASH}"

    return caption


def _state(data: ReportData, time_s: float) -> str:
    frame = int(np.clip(np.searchsorted(data.times_s, time_s + 1e-9, side="right") - 1, 0, len(data.times_s) - 1))
    return f"state {data.states[int(data.state_index[frame])].name} of {len(data.states)}"
