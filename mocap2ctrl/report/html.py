"""The report: one HTML file that holds everything, opens anywhere, and asks the network for nothing."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mocap2ctrl.files import write_bytes
from mocap2ctrl.report.clips import JointError, joint_error
from mocap2ctrl.report.data import ReportData, TermRow, Value
from mocap2ctrl.report.page import data_uri, png_uri, render_page
from mocap2ctrl.report.pictures import DASH, report_sheet, write_report_overlay
from mocap2ctrl.report.plots import plot_costs, plot_joint_error, plot_overlap, plot_timeline, plot_torques
from mocap2ctrl.report.style import DARK, LIGHT, Theme
from mocap2ctrl.report.torques import strongest_per_joint, torque_rows

MakePlot = Callable[[Theme], bytes]


@dataclass(frozen=True)
class Headline:
    """How a headline number is shown: its label, its unit, its format, and what stands beside it."""

    label: str
    unit: str = ""
    form: str = "{}"
    note: str = ""


NUMBERS: dict[str, Headline] = {
    "silhouette_iou": Headline("silhouette overlap", "", "{:.3f}", "intersection over union, mean over frames"),
    "track_silhouette_iou": Headline("the track's overlap", "", "{:.3f}", "of the motion that the controller follows"),
    "track_error_cm": Headline("distance from the track", "cm", "{:.1f}", "controller to track: not an accuracy"),
    "keypoint_error_px": Headline("off the keypoints", "px", "{:.1f}", "mean over points, pixels of the video"),
    "track_keypoint_error_px": Headline("the track is off by", "px", "{:.1f}", "the same of the track"),
    "joint_error_cm": Headline("joint error", "cm", "{:.1f}", "15 joints, all frames, not aligned"),
    "root_aligned_error_cm": Headline("root-aligned error", "cm", "{:.1f}"),
    "source_error_cm": Headline("error against the source", "cm", "{:.1f}", "its own joints, other proportions"),
    "track_joint_error_cm": Headline("the track's joint error", "cm", "{:.1f}", "what seeing alone has lost"),
    "fell": Headline("fell"),
    "in_mujoco": Headline("in MuJoCo", "", "{}", "the same controller in the other engine"),
    "in_bullet": Headline("in Bullet", "", "{}", "the same controller in the other engine"),
    "states": Headline("states"),
    "states_per_second": Headline("states entered a second", "", "{:.1f}", "Vondrak 2012: 2.5 to 4.8"),
    "evaluations": Headline("evaluations", "", "{:,}"),
    "recorded": Headline("of them by earlier runs", "", "{:,}", "times are of the last run"),
    "wall_s": Headline("time", "s", "{:,.0f}"),
    "core_s": Headline("processor time", "core s", "{:,.0f}"),
    "seed": Headline("seed"),
}
"""The numbers that the report knows, in their order."""

NO_REFERENCE = "no reference was given"


@dataclass(frozen=True)
class Card:
    """A headline number, ready to print."""

    label: str
    text: str
    unit: str
    note: str
    alarming: bool


def write_report(
    path: str | os.PathLike[str], data: ReportData, *, video: str | os.PathLike[str] | None = None
) -> None:
    """Write the report of a fit.

    Args:
        path: the `.html`; it appears only when it is complete.
        data: the fit.
        video: an overlay video that already exists; without it one is rendered.
    """
    write_bytes(path, report_html(data, video=video).encode("utf-8"))


def report_html(data: ReportData, *, video: str | os.PathLike[str] | None = None) -> str:
    """Return the report of a fit as text; see `write_report`."""
    error = joint_error(data.character, data.reference, data.simulated)
    video_uri = data_uri(_video_bytes(data, video), "video/mp4")
    rows = torque_rows(data.character, data.torques)
    return render_page(
        "template.html",
        data=data,
        cards=headline_cards(data.numbers, from_video=data.video is not None),
        video=video_uri,
        sheet=png_uri(report_sheet(data)),
        plots=_plots(data, error),
        torque_rows=rows,
        alpha_groups=list(dict.fromkeys(group for state in data.states for group in state.alpha)),
        total=sum(term.weight * term.value for term in data.terms if np.isfinite(term.value)),
        number=_number,
        contribution=_contribution,
        dash=DASH,
        character_line=f"{data.character.height_m:.2f} m, {data.character.mass_kg:.0f} kg",
    )


def headline_cards(numbers: Mapping[str, Value], *, from_video: bool = False) -> list[Card]:
    """Return the numbers as text, known ones first and in order; None is a dash, which a video's card explains."""
    names = [name for name in NUMBERS if name in numbers] + [name for name in numbers if name not in NUMBERS]
    cards = []
    for name in names:
        how, value = NUMBERS.get(name, Headline(name.replace("_", " "))), numbers[name]
        text = _number(value, how.form)
        unit = "" if text == DASH else how.unit
        note = NO_REFERENCE if from_video and name == "joint_error_cm" and text == DASH else how.note
        cards.append(Card(how.label, text, unit, note, alarming=name == "fell" and value is True))
    return cards


def _number(value: Value, form: str = "{:.4g}") -> str:
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return DASH
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return value if isinstance(value, str) else form.format(value)


def _contribution(term: TermRow) -> str:
    return _number(term.weight * term.value)


def _plots(data: ReportData, error: JointError) -> list[dict[str, str]]:
    makers = {**_evidence_plots(data, error), **_motion_plots(data)}
    return [{"alt": alt, "light": png_uri(make(LIGHT)), "dark": png_uri(make(DARK))} for alt, make in makers.items()]


def _evidence_plots(data: ReportData, error: JointError) -> dict[str, MakePlot]:
    """How near controller and evidence are."""
    video = data.video
    if video is None:
        return {"Joint error over time, by group of joints": lambda theme: plot_joint_error(error, theme)}
    return {
        "Silhouette overlap over time, of controller and track": lambda theme: plot_overlap(
            video.times_s, video.simulated_iou, video.track_iou, theme
        ),
        "Distance between controller and track over time, by group of joints": lambda theme: plot_joint_error(
            error, theme, name="Distance between controller and track"
        ),
    }


def _motion_plots(data: ReportData) -> dict[str, MakePlot]:
    """States, contacts, torques and the optimisation."""
    reference_times = np.arange(len(data.reference)) / data.reference.fps
    strongest = strongest_per_joint(torque_rows(data.character, data.torques))
    makers: dict[str, MakePlot] = {
        "State machine and foot contacts over time": lambda theme: plot_timeline(
            data.times_s,
            data.state_index,
            data.states,
            reference_times_s=reference_times,
            reference_contacts=data.reference_contacts,
            simulated_contacts=data.simulated_contacts,
            reference_name="reference" if data.video is None else "track",
            theme=theme,
        ),
        "Joint torques beside human strength": lambda theme: plot_torques(strongest, theme),
    }
    if data.log:
        makers["Cost terms over the optimisation"] = lambda theme: plot_costs(data.log, theme)
    return makers


def _video_bytes(data: ReportData, video: str | os.PathLike[str] | None) -> bytes:
    if video is not None:
        return Path(video).read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "overlay.mp4"
        write_report_overlay(path, data)
        return path.read_bytes()
