"""Files of keypoints, whoever wrote them: OpenPose, Sports2D, Pose2Sim, MediaPipe, or somebody who clicked on a few frames."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from mocap2ctrl.character.landmarks import LANDMARKS
from mocap2ctrl.errors import KeypointsError
from mocap2ctrl.types import Array
from mocap2ctrl.video.decode import require_utf8
from mocap2ctrl.video.keypoints_layouts import LAYOUTS, trc_landmark
from mocap2ctrl.video.keypoints_people import people_of
from mocap2ctrl.video.mask_files import natural_order

HOW = "give a folder of OpenPose's JSON files, a JSON file of MediaPipe's landmarks or of clicked points, or a _px.trc of Sports2D"
IN_PICTURE = 1.5
"""Coordinates that are mostly below are shares of the picture, not pixels."""
METRES = 20.0
"""A TRC file whose largest numbers are below is in metres."""
TRC_HEAD = 5

FRAME_KEYS = ("frame", "frame_index", "frame_idx", "frame_number", "frame_id", "frameIndex", "frameNumber")
SECOND_KEYS = {"time_s": 1.0, "timestamp_s": 1.0, "timestamp_ms": 1e-3, "timestampMs": 1e-3}


class Sighting(NamedTuple):
    """What was seen at one moment.

    Attributes:
        moment: number of the video's frame, from 0, or seconds from its start.
        unit: which of the two.
        people: (P, K, 3) x, y and confidence, 0 where a point is not seen.
    """

    moment: float
    unit: Literal["frame", "s"]
    people: Array


@dataclass(frozen=True, eq=False)
class Sightings:
    """A file, or folder, of keypoints.

    Attributes:
        file: where they came from.
        what: kind of file, for the user.
        names: of the K landmarks.
        moments: one after the other.
        normalised: whether x and y are shares of the picture's width and height; else they are pixels.
    """

    file: Path
    what: str
    names: tuple[str, ...]
    moments: tuple[Sighting, ...]
    normalised: bool


def read_keypoints(path: str | Path) -> Sightings:
    """Reads keypoints of any kind.

    Raises:
        KeypointsError: they cannot be read; says why.
    """
    require_utf8(path)
    file = Path(path)
    if file.is_dir():
        return _detected(file, _folder_frames(file))
    if not file.is_file():
        raise KeypointsError(f"{file}: no such file or folder; {HOW}")
    if file.suffix.lower() == ".trc":
        return _trc(file)
    value = _json(file)
    entries = value.get("frames") if isinstance(value, dict) else None
    if isinstance(entries, list) and any(isinstance(entry, dict) and "points" in entry for entry in entries):
        return _clicked(file, entries)
    return _detected(file, _listed_frames(file, value))


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise KeypointsError(f"{file}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        raise KeypointsError(f"{file}: is no JSON ({' '.join(str(error).split())}); {HOW}") from error


Frames = list[tuple[float, Literal["frame", "s"], Any]]


def _folder_frames(folder: Path) -> Frames:
    """A file a frame; the last number in its name is the frame's."""
    files = sorted((f for f in folder.iterdir() if f.suffix.lower() == ".json"), key=lambda f: natural_order(f.name))
    files = [f for f in files if f.stem.endswith("_keypoints")] or files
    if not files:
        raise KeypointsError(f"{folder}: holds no JSON file; {HOW}")
    return [(_number_in(file), "frame", _json(file)) for file in files]


def _number_in(file: Path) -> float:
    numbers = re.findall(r"\d+", file.stem)
    if not numbers:
        raise KeypointsError(f"{file}: its name holds no frame number; expected NAME_000000000012_keypoints.json")
    return float(numbers[-1])


def _listed_frames(file: Path, value: Any) -> Frames:
    """All frames in one file: a list, a dictionary that holds one as `frames`, or one by frame number."""
    if isinstance(value, dict):
        if "people" in value:
            return [(_number_in(file), "frame", value)]
        if all(re.fullmatch(r"\d+", key) for key in value) and value:
            return [(float(key), "frame", entry) for key, entry in value.items()]
        value = next((value[key] for key in ("frames", "poses", "results", "data") if value.get(key)), None)
    if not isinstance(value, list) or not value:
        raise KeypointsError(f"{file}: holds no list of frames; {HOW}")
    return [(*_moment(entry, number), entry) for number, entry in enumerate(value)]


def _moment(entry: Any, number: int | None) -> tuple[float, Literal["frame", "s"]]:
    """When an entry was seen: what it says, else its place in the list."""
    if isinstance(entry, Mapping):
        for key in FRAME_KEYS:
            if _is_number(entry.get(key)):
                return float(entry[key]), "frame"
        for key, unit in SECOND_KEYS.items():
            if _is_number(entry.get(key)):
                return unit * float(entry[key]), "s"
    if number is None:
        raise KeypointsError("neither frame nor time_s is given")
    return float(number), "frame"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def _detected(file: Path, frames: Frames) -> Sightings:
    """A detector's frames; the number of points says which detector's they are."""
    found = [(moment, unit, people_of(value, f"{file}: frame {moment:g}")) for moment, unit, value in frames]
    counts = {len(person) for _, _, people in found for person in people}
    if not counts:
        raise KeypointsError(f"{file}: no person in any of {len(found)} frames; {HOW}")
    if len(counts) > 1 or next(iter(counts)) not in LAYOUTS:
        known = ", ".join(f"{count} ({what})" for count, (what, _) in LAYOUTS.items())
        raise KeypointsError(
            f"{file}: people of {', '.join(map(str, sorted(counts)))} points; allowed is one of {known}"
        )
    what, layout = LAYOUTS[next(iter(counts))]
    used = [i for i, name in enumerate(layout) if name is not None]
    names = tuple(name for name in layout if name is not None)
    moments = tuple(
        Sighting(moment, unit, np.array([person[used] for person in people]).reshape(len(people), len(used), 3))
        for moment, unit, people in found
    )
    return Sightings(file, what, names, moments, _normalised(file, moments))


def _normalised(file: Path, moments: tuple[Sighting, ...]) -> bool:
    points = np.concatenate([m.people.reshape(-1, 3) for m in moments])
    places = points[points[:, 2] > 0, :2]
    if not len(places):
        raise KeypointsError(f"{file}: no point is seen in any frame (every confidence is 0)")
    if np.percentile(np.abs(places), 90) > IN_PICTURE:
        return False
    if np.mean(places < 0) > 0.1:
        raise KeypointsError(
            f"{file}: x and y run from -1 to 1; write them in pixels, or from 0 to 1 (--keypoint_scale 0 or 3)"
        )
    return True


def _clicked(file: Path, entries: list[Any]) -> Sightings:
    """Clicks on a few frames: `{"frames": [{"frame": 12, "points": {"left_knee": [x, y]}}]}`."""
    names = tuple(dict.fromkeys(name for entry in entries for name in _clicks(file, entry)))
    moments = []
    for number, entry in enumerate(entries):
        people = np.zeros((1, len(names), 3))
        for name, place in _clicks(file, entry).items():
            if not (isinstance(place, list) and len(place) == 2 and all(map(_is_number, place))):
                raise KeypointsError(
                    f"{file}: {name} is {json.dumps(place)[:60]}; expected [x, y], pixels of the video"
                )
            people[0, names.index(name)] = (*place, 1.0)
        try:
            moments.append(Sighting(*_moment(entry, None), people))
        except KeypointsError as error:
            raise KeypointsError(f"{file}: entry {number + 1} of frames: {error}; give one of them") from error
    return Sightings(file, "clicked points", names, tuple(moments), False)


def _clicks(file: Path, entry: Any) -> dict[str, Any]:
    points = entry.get("points") if isinstance(entry, dict) else None
    if not isinstance(points, dict) or not points:
        raise KeypointsError(f'{file}: an entry of frames has no points; expected {{"left_knee": [x, y], …}}')
    for name in points:
        if name not in LANDMARKS:
            raise KeypointsError(f"{file}: there is no point {name!r}; known are {', '.join(LANDMARKS)}")
    return points


def _trc(file: Path) -> Sightings:
    """A TRC file in pixels, as Sports2D writes one a person; what is missing is empty or 0."""
    try:
        lines = file.read_bytes().decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise KeypointsError(f"{file}: cannot be read ({error})") from error
    columns = lines[TRC_HEAD - 2].rstrip().split("\t") if len(lines) > TRC_HEAD else []
    marks = {i: name for i, head in enumerate(columns[2:]) if (name := trc_landmark(head.strip())) is not None}
    if columns[:1] != ["Frame#"] or not marks:
        raise KeypointsError(f"{file}: is no TRC file with points of a body; {HOW}")
    width = max(marks) + 2
    rows = [_trc_row(file, TRC_HEAD + i + 1, line, width) for i, line in enumerate(lines[TRC_HEAD:]) if line.strip()]
    places = np.array([[row[i : i + 2] for i in marks] for _, row in rows]).reshape(len(rows), len(marks), 2)
    seen = np.isfinite(places).all(axis=-1) & np.any(places != 0, axis=-1)
    if not seen.any():
        raise KeypointsError(f"{file}: no point is seen in any frame")
    if np.abs(places[seen]).max() < METRES:
        raise KeypointsError(f"{file}: is in metres; give the file in pixels (NAME_px_personNN.trc of Sports2D)")
    people = np.concatenate([np.where(seen[..., None], places, 0.0), seen[..., None]], axis=-1)
    moments = tuple(Sighting(time_s, "s", person[None]) for (time_s, _), person in zip(rows, people, strict=True))
    return Sightings(file, "TRC in pixels", tuple(marks.values()), moments, False)


def _trc_row(file: Path, number: int, line: str, width: int) -> tuple[float, Array]:
    """Time and the first `width` numbers of a line; what is empty, or cut off, is NaN."""
    try:
        _, time_s, *values = (float(cell) if cell.strip() else np.nan for cell in line.split("\t"))
    except ValueError as error:
        raise KeypointsError(f"{file}: line {number}: {error}; expected frame, time and coordinates") from error
    if not np.isfinite(time_s):
        raise KeypointsError(f"{file}: line {number}: time is {time_s}; expected seconds")
    return time_s, np.array((values + [np.nan] * width)[:width])
