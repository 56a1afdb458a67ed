"""The capture folder: the one hand-over between commands. Files are whole or absent, and never pickles."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.control.controller import Controller
from mocap2ctrl.control.file import load_controller, save_controller
from mocap2ctrl.errors import CaptureError, ConfigError
from mocap2ctrl.files import write_arrays, write_text
from mocap2ctrl.fit.config import FitConfig, config_from_mapping
from mocap2ctrl.prior.choose import load_prior
from mocap2ctrl.prior.files import save_prior
from mocap2ctrl.prior.pca import PosePrior, Prior
from mocap2ctrl.types import Array, MotionClip

CONTROLLER, CHARACTER, PRIOR, TARGET, CONFIG, LOG = (
    "controller.json",
    "character.toml",
    "prior.npz",
    "target.npz",
    "config.toml",
    "log.jsonl",
)
JOURNAL = Path("checkpoint") / "journal.bin"
TARGET_FORMAT = 1
CONFIG_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Capture:
    """A fitted controller with everything it was fitted to.

    Attributes:
        folder: where it lives.
        character: the body.
        prior: what target poses are coefficients of.
        reference: the retargeted motion, at the input's own rate.
        source_points: (T, E, 3) the source's own joints at the reference's frames, NaN where it has none.
        config: how it was fitted.
        run: engine, torque scale and options that are not part of `config`; plain values.
        controller: the result, or None while the fit has not ended.
    """

    folder: Path
    character: Character
    prior: Prior
    reference: MotionClip
    source_points: Array
    config: FitConfig
    run: Mapping[str, Any]
    controller: Controller | None = None

    @property
    def engine_name(self) -> str:
        """The engine that the controller was fitted in."""
        return str(self.run.get("engine", "mujoco"))

    @property
    def torque_scale(self) -> float:
        """The factor on torque bounds that the controller was fitted with."""
        return float(self.run.get("torque_scale", 1.0))

    @property
    def complete(self) -> bool:
        """Whether the fit has ended by itself; one that Ctrl-C ended has a controller but can be resumed."""
        return self.controller is not None and self.controller.provenance.get("complete") is not False

    def finished_controller(self) -> Controller:
        """The controller.

        Raises:
            CaptureError: the fit has not ended.
        """
        if self.controller is None:
            raise CaptureError(
                f"{self.folder}: holds no {CONTROLLER}; its fit has not ended, go on with fit … --resume"
            )
        return self.controller


def prepare_folder(folder: Path, *, resume: bool, overwrite: bool) -> None:
    """Makes room for a capture.

    Raises:
        CaptureError: there is one already and neither `resume` nor `overwrite` was given, or the folder holds other things.
    """
    if folder.exists() and not folder.is_dir():
        raise CaptureError(f"{folder}: is a file; choose another -o")
    if folder.is_dir() and any(folder.iterdir()):
        if not _holds_capture(folder):
            raise CaptureError(f"{folder}: is not empty and no capture; choose another -o")
        if not (resume or overwrite):
            raise CaptureError(f"{folder}: holds a capture already; use --resume to go on, --overwrite, or another -o")
        if overwrite:
            _empty(folder)
    elif resume:
        raise CaptureError(f"{folder}: there is no capture to resume; leave --resume out")
    try:
        (folder / JOURNAL.parent).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CaptureError(f"{folder}: cannot be made ({error.strerror or error}); choose another -o") from error


def _empty(folder: Path) -> None:
    """Removes what is inside; the folder itself may be a link, a mount or the working directory, and stays."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _holds_capture(folder: Path) -> bool:
    """Whether a fit has written here; other programs call their settings `config.toml` too, and nobody's folder is emptied."""
    return (folder / CONFIG).exists() and any((folder / name).exists() for name in (CHARACTER, TARGET, CONTROLLER))


def save_inputs(capture: Capture) -> None:
    """Writes what a fit starts from; enough to resume it."""
    write_text(capture.folder / CHARACTER, tomli_w.dumps(dict(capture.character.description)))
    if isinstance(capture.prior, PosePrior):
        save_prior(capture.folder / PRIOR, capture.prior)
    clip = capture.reference
    write_arrays(
        capture.folder / TARGET,
        {
            "format": np.array(TARGET_FORMAT),
            "name": np.array(clip.name),
            "fps": np.array(clip.fps),
            "root_position_m": clip.root_position,
            "root_orientation_wxyz": clip.root_orientation,
            "angles_rad": clip.angles,
            "hinge_names": np.array(capture.character.hinge_names),
            "loop": np.array(clip.loop),
            "ends_standing": np.array(clip.ends_standing),
            "provenance_json": np.array(json.dumps(dict(clip.provenance))),
            "source_points_m": capture.source_points,
        },
    )
    table = {"format": CONFIG_FORMAT, "run": _plain(capture.run), "fit": _plain(asdict(capture.config))}
    write_text(capture.folder / CONFIG, tomli_w.dumps(table))


def save_result(capture: Capture) -> None:
    """Writes the controller."""
    save_controller(capture.folder / CONTROLLER, capture.finished_controller(), capture.character)


def load_capture(folder: Path | str) -> Capture:
    """Reads a capture folder, checking everything once.

    Raises:
        CaptureError: missing or damaged; ControllerFileError, CharacterError, PriorError, ConfigError for those files.
    """
    folder = Path(folder)
    if not (folder / CONFIG).is_file():
        raise CaptureError(
            f"{folder}: is no capture folder (no {CONFIG}); give a folder that mocap2ctrl fit has written"
        )
    run, config = _load_config(folder / CONFIG)
    character = load_character(folder / CHARACTER)
    prior = load_prior(str(folder / PRIOR) if (folder / PRIOR).exists() else "identity", character)
    reference, source_points = _load_target(folder / TARGET, character)
    controller = None
    if (folder / CONTROLLER).exists():
        controller = load_controller(folder / CONTROLLER, character, prior.decode)
    return Capture(
        folder=folder,
        character=character,
        prior=prior,
        reference=reference,
        source_points=source_points,
        config=config,
        run=run,
        controller=controller,
    )


def _load_config(path: Path) -> tuple[Mapping[str, Any], FitConfig]:
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CaptureError(f"{path}: cannot be read ({error})") from error
    if table.get("format") != CONFIG_FORMAT:
        raise CaptureError(f"{path}: format is {table.get('format')!r}; this version reads {CONFIG_FORMAT}")
    for name in ("run", "fit"):
        if not isinstance(table.get(name), dict):
            raise CaptureError(f"{path}: the table [{name}] is missing; restore the file or fit anew")
    run = table["run"]
    engine, scale, cycles = run.get("engine", "mujoco"), run.get("torque_scale", 1.0), run.get("cycles", 1)
    for name, value, allowed, valid in (
        ("engine", engine, "an engine's name", isinstance(engine, str)),
        ("torque_scale", scale, "a number from 0.01 to 10", _is_number(scale) and 0.01 <= scale <= 10),
        ("cycles", cycles, "a whole number from 1 on", _is_number(cycles) and cycles >= 1 and cycles % 1 == 0),
    ):
        if not valid:
            raise CaptureError(f"{path}: run.{name} is {value!r}; allowed is {allowed}")
    try:
        return run, config_from_mapping(table["fit"])
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _load_target(path: Path, character: Character) -> tuple[MotionClip, Array]:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as data:
            if int(data["format"]) != TARGET_FORMAT:
                raise CaptureError(f"{path}: format is {int(data['format'])}; this version reads {TARGET_FORMAT}")
            names = tuple(str(n) for n in data["hinge_names"])
            if names != character.hinge_names:
                raise CaptureError(f"{path}: its joints are not those of {CHARACTER}; restore the file or fit anew")
            clip = MotionClip(
                name=str(data["name"]),
                fps=float(data["fps"]),
                root_position=data["root_position_m"],
                root_orientation=data["root_orientation_wxyz"],
                angles=data["angles_rad"],
                loop=bool(data["loop"]),
                ends_standing=bool(data["ends_standing"]),
                provenance=dict(json.loads(str(data["provenance_json"]))),
            )
            points, shape = np.asarray(data["source_points_m"], float), (len(clip), len(character.evaluation_points), 3)
            if points.shape != shape:
                raise CaptureError(f"{path}: source_points_m has shape {points.shape}; expected {shape}")
            return clip, points
    except CaptureError:
        raise
    except Exception as error:  # a damaged archive raises many kinds
        raise CaptureError(f"{path}: cannot be read ({type(error).__name__}); restore the file or fit anew") from error


def _plain(value: Any) -> Any:
    """Values that TOML can hold: None is left out."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        return value.item()
    return value
