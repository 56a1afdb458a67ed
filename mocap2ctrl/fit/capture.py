"""The capture folder: the one hand-over between commands. Files are whole or absent, and never pickles."""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import os
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.control.controller import Controller
from mocap2ctrl.control.file import load_controller, save_controller
from mocap2ctrl.errors import CaptureError, ConfigError
from mocap2ctrl.files import is_partial, write_bytes, write_text
from mocap2ctrl.fit.config import FitConfig, config_from_mapping
from mocap2ctrl.fit.lock import IN_USE, in_use
from mocap2ctrl.fit.target_file import Target, load_target, save_target
from mocap2ctrl.motion.clips import resample
from mocap2ctrl.prior.choose import IDENTITY_SPREAD_RAD, load_prior
from mocap2ctrl.prior.files import save_prior
from mocap2ctrl.prior.pca import IdentityPrior, PosePrior, Prior
from mocap2ctrl.types import Array, MotionClip, Silhouettes
from mocap2ctrl.video.camera_file import load_camera, save_camera

CONTROLLER, CHARACTER, PRIOR, TARGET, CAMERA, CONFIG, LOG = (
    "controller.json",
    "character.toml",
    "prior.npz",
    "target.npz",
    "camera.toml",
    "config.toml",
    "log.jsonl",
)
EARLIER = "controller.earlier"
"""Beginning of the names of controllers whose place another has taken."""

CHECKPOINT = Path("checkpoint")
REPORT = "report.html"
"""The last file that a fit writes."""

NAME_BYTES = 255
"""What file systems allow a name."""

JOURNAL = CHECKPOINT / "journal.bin"
WRITTEN = CHECKPOINT / "controller.sha256"
"""Tells a controller as it was fitted from one that somebody has edited."""

CONFIG_FORMAT = 2
OLD_CONFIG_FORMAT = 1
"""Called the markers' weight `likelihood`."""

BEGINNING = {CHECKPOINT.name, PRIOR, CAMERA, CHARACTER, CONFIG, LOG}
"""What is written before a folder is a capture."""

GROWTH_VARIANCE = 0.99
"""Share of the variance that target poses keep in growth from silhouettes alone; the paper's 95 % lose 5 to 14 cm."""


@dataclass(frozen=True, eq=False)
class Capture:
    """A fitted controller with everything it was fitted to.

    Attributes:
        folder: where it lives.
        character: the body; for a video with the person's limb lengths.
        prior: of poses: what target poses of motion capture are coefficients of, or what a video's track was found with.
        reference: the retargeted motion, at the input's own rate, or a video's track, at the silhouettes' rate.
        source_points: (T, E, 3) the source's own joints at the reference's frames, NaN where it has none.
        config: how it was fitted.
        run: engine, torque scale and options that are not part of `config`; plain values.
        controller: the result, or None while the fit has not ended.
        silhouettes: of the person in the video, at the video's rate; None for motion capture.
        girth: of the character's shape in silhouettes (`BodyShape.radii_at`).
    """

    folder: Path
    character: Character
    prior: Prior
    reference: MotionClip
    source_points: Array
    config: FitConfig
    run: Mapping[str, Any]
    controller: Controller | None = None
    silhouettes: Silhouettes | None = None
    girth: float = 1.0

    @property
    def target_prior(self) -> Prior:
        """What the controller's target poses are coefficients of.

        For a video the track already holds what the prior knows, so targets are plain angles, except in growth from
        silhouettes alone.
        """
        if self.silhouettes is None or not isinstance(self.prior, PosePrior):
            return self.prior
        if self.config.method == "growth":
            return self.prior.truncated(GROWTH_VARIANCE)
        return IdentityPrior(len(self.character.hinges), np.array(IDENTITY_SPREAD_RAD))

    @property
    def objective_clip(self) -> MotionClip:
        """The reference as the objective looks at it: not looped, at its rate."""
        return resample(replace(self.reference, loop=False), self.config.fps)

    @property
    def engine_name(self) -> str:
        """The engine that the controller was fitted in."""
        return str(self.run.get("engine", "mujoco"))

    @property
    def also_in(self) -> tuple[str, ...]:
        """Further engines that the controller was fitted in at the same time."""
        return tuple(self.run.get("also_in", ()))

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


def check_folder(folder: Path, *, resume: bool, overwrite: bool) -> None:
    """Whether there is room for a capture, or one to resume; changes nothing.

    Raises:
        CaptureError: there is one already and neither `resume` nor `overwrite` was given, or the folder holds other things, or
            cannot be made.
    """
    check_place(folder)
    if folder.is_dir() and any(folder.iterdir()):
        if not holds_capture(folder):
            raise CaptureError(f"{folder}: is not empty and no capture; choose another -o")
        if not (resume or overwrite):
            raise CaptureError(f"{folder}: holds a capture already; use --resume to go on, --overwrite, or another -o")
    elif resume:
        raise CaptureError(f"{folder}: there is no capture to resume; leave --resume out")


def prepare_folder(folder: Path, *, resume: bool, overwrite: bool) -> None:
    """Makes room for a capture.

    Raises:
        CaptureError: as `check_folder`, or the folder cannot be made.
    """
    check_folder(folder, resume=resume, overwrite=overwrite)
    if in_use(folder / JOURNAL):
        raise CaptureError(f"{folder}: {IN_USE}")
    if overwrite and folder.is_dir():
        _empty(folder)
    make_folder(folder / CHECKPOINT)


def check_place(folder: Path) -> None:
    """Whether a folder is there to write in, or can be made; changes nothing.

    Raises:
        CaptureError: it is a file, or below one, its name is too long, or nobody may write there.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise CaptureError(f"{folder}: is a file; choose another -o")
        nearest = folder.absolute()
        while not nearest.exists():
            nearest = nearest.parent
        for part in folder.absolute().relative_to(nearest).parts:
            if len(os.fsencode(part)) > NAME_BYTES:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        if not nearest.is_dir():
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise _cannot_be_made(folder, error) from error


def make_folder(folder: Path) -> None:
    """Makes a folder and its parents.

    Raises:
        CaptureError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_be_made(folder, error) from error


def _cannot_be_made(folder: Path, error: OSError) -> CaptureError:
    return CaptureError(
        f"{folder}: the folder cannot be made or written ({error.strerror or error}); choose another -o"
    )


def _empty(folder: Path) -> None:
    """Removes what is inside; the folder itself may be a link, a mount or the working directory, and stays."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def holds_capture(folder: Path) -> bool:
    """Whether a fit has written here; other programs call their settings `config.toml` too, and nobody's folder is emptied."""
    written = (folder / CONFIG).exists() and any((folder / name).exists() for name in (CHARACTER, TARGET, CONTROLLER))
    return written or _just_begun(folder)


def _just_begun(folder: Path) -> bool:
    """A fit that died at once leaves a checkpoint, and perhaps the first files of a capture, but nothing else."""
    if not (folder / CHECKPOINT).is_dir():
        return False
    names = {entry.name for entry in folder.iterdir() if not is_partial(entry)}
    return names <= BEGINNING and all(entry.name == JOURNAL.name for entry in (folder / CHECKPOINT).iterdir())


def save_begun(folder: Path, character: Character, config: FitConfig, run: Mapping[str, Any]) -> None:
    """Writes what is known of a fit before there is a reference: while a video is tracked."""
    write_text(folder / CHARACTER, tomli_w.dumps(dict(character.description)))
    table = {"format": CONFIG_FORMAT, "run": _plain(run), "fit": _plain(asdict(config))}
    write_text(folder / CONFIG, tomli_w.dumps(table))


def save_inputs(capture: Capture) -> None:
    """Writes what a fit starts from; enough to resume it."""
    if isinstance(capture.prior, PosePrior):
        save_prior(capture.folder / PRIOR, capture.prior)
    if capture.silhouettes is not None:
        save_camera(capture.folder / CAMERA, capture.silhouettes.camera)
    target = Target(capture.reference, capture.source_points, capture.silhouettes, capture.girth)
    save_begun(capture.folder, capture.character, capture.config, capture.run)
    save_target(capture.folder / TARGET, target, capture.character)


def save_result(capture: Capture) -> Path | None:
    """Writes the controller. Another that is finished, or that somebody has edited, is kept beside it: where, or None."""
    place, kept = capture.folder / CONTROLLER, None
    before = place.read_bytes() if place.exists() else b""
    if before and not _of_interrupted_fit(capture.folder):
        names = (f"{EARLIER}{f'-{i}' if i > 1 else ''}.json" for i in itertools.count(1))
        kept = next(path for name in names if not (path := capture.folder / name).exists())
        write_bytes(kept, before)
    save_controller(place, capture.finished_controller(), capture.character)
    (capture.folder / CHECKPOINT).mkdir(exist_ok=True)
    write_text(capture.folder / WRITTEN, hashlib.sha256(place.read_bytes()).hexdigest())
    if kept is not None and _performing(before) == _performing(place.read_bytes()):
        kept.unlink()
        return None
    return kept


def _performing(controller: bytes) -> Any:
    """What of a controller's file tells what it does; of a damaged one itself."""
    try:
        return {name: value for name, value in json.loads(controller).items() if name != "provenance"}
    except (ValueError, AttributeError):
        return controller


def _of_interrupted_fit(folder: Path) -> bool:
    """Whether the controller there is as a fit that was interrupted left it."""
    data, written = (folder / CONTROLLER).read_bytes(), folder / WRITTEN
    if not written.exists() or written.read_text("utf-8") != hashlib.sha256(data).hexdigest():
        return False
    return json.loads(data)["provenance"]["complete"] is False


def load_capture(folder: Path | str) -> Capture:
    """Reads a capture folder, checking everything once.

    Raises:
        CaptureError: missing or damaged; ControllerFileError, CharacterError, PriorError, ConfigError for those files.
    """
    folder = Path(folder)
    run, config = load_settings(folder)
    if not (folder / TARGET).exists():
        if "track_key" in run and not (folder / CONTROLLER).exists():
            raise CaptureError(f"{folder}: holds no {TARGET}; its tracking has not ended, go on with fit … --resume")
        raise CaptureError(f"{folder}: {TARGET} is missing; restore the file or fit anew")
    character = load_character(folder / CHARACTER)
    prior = load_prior(str(folder / PRIOR) if (folder / PRIOR).exists() else "identity", character)
    camera = load_camera(folder / CAMERA) if (folder / CAMERA).exists() else None
    target = load_target(folder / TARGET, character, camera)
    capture = Capture(
        folder=folder,
        character=character,
        prior=prior,
        reference=target.reference,
        source_points=target.source_points,
        config=config,
        run=run,
        silhouettes=target.silhouettes,
        girth=target.girth,
    )
    if not (folder / CONTROLLER).exists():
        return capture
    return replace(capture, controller=load_controller(folder / CONTROLLER, character, capture.target_prior.decode))


def load_settings(folder: Path) -> tuple[Mapping[str, Any], FitConfig]:
    """The options and settings that a capture was begun with.

    Raises:
        CaptureError: there is no capture, or its settings are damaged; ConfigError for a wrong setting.
    """
    if not (folder / CONFIG).is_file():
        raise CaptureError(
            f"{folder}: is no capture folder (no {CONFIG}); give a folder that mocap2ctrl fit has written"
        )
    return _load_config(folder / CONFIG)


def _load_config(path: Path) -> tuple[Mapping[str, Any], FitConfig]:
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CaptureError(f"{path}: cannot be read ({error})") from error
    if table.get("format") not in (OLD_CONFIG_FORMAT, CONFIG_FORMAT):
        raise CaptureError(f"{path}: format is {table.get('format')!r}; this version reads up to {CONFIG_FORMAT}")
    for name in ("run", "fit"):
        if not isinstance(table.get(name), dict):
            raise CaptureError(f"{path}: the table [{name}] is missing; restore the file or fit anew")
    run = table["run"]
    engine, scale, cycles = run.get("engine", "mujoco"), run.get("torque_scale", 1.0), run.get("cycles", 1)
    ground, also_in = run.get("allow_ground", False), run.get("also_in", [])
    for name, value, allowed, valid in (
        ("engine", engine, "an engine's name", isinstance(engine, str)),
        (
            "also_in",
            also_in,
            "a list of engines' names",
            isinstance(also_in, list) and all(isinstance(n, str) for n in also_in),
        ),
        ("torque_scale", scale, "a number from 0.01 to 10", _is_number(scale) and 0.01 <= scale <= 10),
        ("cycles", cycles, "a whole number from 1 on", _is_number(cycles) and cycles >= 1 and cycles % 1 == 0),
        ("allow_ground", ground, "true or false", isinstance(ground, bool)),
    ):
        if not valid:
            raise CaptureError(f"{path}: run.{name} is {value!r}; allowed is {allowed}")
    try:
        return run, config_from_mapping(_renamed(table))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def _renamed(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """The table `fit` with the names of this version."""
    fit = dict(table["fit"])
    weights = fit.get("weights")
    if table["format"] == OLD_CONFIG_FORMAT and isinstance(weights, dict) and "likelihood" in weights:
        fit["weights"] = {("markers" if name == "likelihood" else name): value for name, value in weights.items()}
    return fit


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    """Values that TOML can hold: None is left out."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        return value.item()
    return value
