"""From what a user gives to a capture that is ready to be fitted; what does not go together is refused in one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import CaptureError, ConfigError
from mocap2ctrl.fit.capture import REPORT, Capture, check_folder, holds_capture, load_capture, prepare_folder
from mocap2ctrl.fit.config import FitConfig
from mocap2ctrl.fit.differing import differing
from mocap2ctrl.fit.video import tracked_capture
from mocap2ctrl.motion.kinds import KINDS_TEXT, MOTION_SUFFIXES
from mocap2ctrl.motion.load import LoadedMotion
from mocap2ctrl.motion.own_npz import is_motion_archive
from mocap2ctrl.motion.stated import Stated
from mocap2ctrl.prior.choose import NO_PRIOR, load_prior, shipped_priors
from mocap2ctrl.prior.pca import PosePrior, Prior
from mocap2ctrl.video.belt import belt_choice
from mocap2ctrl.video.mask_files import is_mask_spec
from mocap2ctrl.video.silhouettes import LoadedSilhouettes, input_file
from mocap2ctrl.video.silhouettes import input_name as seen_name
from mocap2ctrl.video.sources import check_method

VIDEO_SUFFIXES = frozenset(
    ".mp4 .mov .avi .mkv .webm .m4v .mpg .mpeg .m2ts .mts .ts .wmv .flv .ogv .3gp .mjpeg .mjpg .gif".split()  # noqa: SIM905
)
VIDEO_PRIORS = ("everyday", "all", "locomotion", "strike", "dance", "acrobatics", "getup", "exercise")
"""What `auto` means for a video: the search is under the first, and the track ends under the one that makes it most likely."""

SHORTEST_S = 0.1


@dataclass(frozen=True)
class Options:
    """What a user may say about an input, beside how hard to try.

    Attributes:
        prior: `auto`, `none`, or the name or path of a pose prior.
        time_range: seconds of the input to use.
        fps: frames a second, of a video to use, of masks whose file does not say.
        cycles: how often a motion's loop is repeated.
        camera: that saw a video or masks, `FILE.toml` or `FILE.toml:NAME`.
        background: a picture of a video's empty scene.
        person: which one of several, `X,Y` or `X,Y@T`, pixels and seconds.
        masks: whether a video holds masks.
        allow_ground: whether the person in a video may touch the ground with more than the legs without falling.
        reference: the true motion of a video, for the evaluation.
        slowmo: how often slower than life a video plays; None: what the file says, or 1.
        belt: that the person is on: `auto`, which is meant without it, `none`, or its speed in m/s.
        height_m: of the person, if it was given.
        keypoints: a file or folder of points of the body in a video's frames.
        background_method: how a video's empty scene is found; see `video.sources.METHODS`.
        unit, up, joint_map: of a motion file, where they shall not be inferred; see `motion.stated`.
        skeleton: the ASF of an AMC.
    """

    prior: str = "auto"
    time_range: tuple[float, float] | None = None
    fps: float | None = None
    cycles: int = 1
    camera: Path | str | None = None
    background: Path | str | None = None
    person: str | Sequence[float] | None = None
    masks: bool = False
    allow_ground: bool = False
    reference: Path | str | None = None
    slowmo: float | None = None
    belt: str | float | None = None
    height_m: float | None = None
    keypoints: Path | str | None = None
    background_method: str | None = None
    unit: str | float | None = None
    up: str | None = None
    joint_map: Path | str | Mapping[str, str] | None = None
    skeleton: Path | str | None = None

    @property
    def stated(self) -> Stated:
        """What is said of a motion file that it does not say itself, or not truly."""
        return Stated(self.skeleton, self.fps, self.unit, self.up, self.joint_map)


VIDEO_OPTIONS = (
    "camera",
    "background",
    "background_method",
    "person",
    "masks",
    "allow_ground",
    "reference",
    "slowmo",
    "keypoints",
)
MOTION_OPTIONS = ("unit", "up", "joint_map", "skeleton")


@dataclass(frozen=True, eq=False)
class Job:
    """A fit to be made.

    Attributes:
        source: the input.
        folder: of the capture.
        character: the body.
        config: settings, a video's by `video_config`.
        run: engine, torque scale and what else the capture is to remember.
        workers: processes.
        resume, overwrite: what to do with a capture that is there.
    """

    source: Path | str
    folder: Path
    character: Character
    config: FitConfig
    run: Mapping[str, Any]
    workers: int
    resume: bool
    overwrite: bool

    def check_folder(self) -> None:
        """Whether there can be room; nothing is changed.

        Raises:
            CaptureError: there cannot.
        """
        check_folder(self.folder, resume=self.resume, overwrite=self.overwrite)
        if self.resume and (self.folder / REPORT).exists():
            self._check_unfinished(load_capture(self.folder))

    def _check_unfinished(self, was: Capture) -> None:
        """Whether a capture's fit is to go on: it was cut short, or ended with growth alone and more is wanted."""
        if was.controller is None or not was.complete:
            return
        beyond = tuple(was.controller.provenance.get("beyond_growth", was.config.beyond_growth))
        if beyond == self.config.beyond_growth:
            other = differing(self.folder, self.config, self.run)
            why = f" and was another ({other})" if other else "; there is nothing to resume"
            raise CaptureError(f"{self.folder}: its fit has ended{why}. Use --overwrite to fit anew")
        if beyond:
            options = " ".join(f"--{name}" for name in beyond)
            raise CaptureError(
                f"{self.folder}: its fit has ended, with {options}; only a fit without goes on with something else. "
                "Choose another -o, or use --overwrite, to fit anew"
            )

    def keep(self, *inputs: object) -> None:
        """Whether files that are to be read, the paths among `inputs`, are safe from `overwrite`, which empties the folder.

        Raises:
            CaptureError: one lies in the folder.
        """
        for given in inputs if self.overwrite else ():
            file = Path(given) if isinstance(given, str | Path) else None
            if file is not None and file.exists() and self.folder.resolve() in file.resolve().parents:
                raise CaptureError(f"{given}: lies in {self.folder}, which --overwrite empties; choose another -o")

    def make_room(self) -> None:
        """The folder. Not before the input is known to be good: a bad one overwrites nothing."""
        self.check_folder()
        prepare_folder(self.folder, resume=self.resume, overwrite=self.overwrite)


def is_video_input(source: Path | str) -> bool:
    """Whether `source` was seen by a camera: a video by its suffix, a folder, or masks; anything else is a motion."""
    seen = Path(source).suffix.lower() in VIDEO_SUFFIXES or is_mask_spec(source)
    return seen and not is_motion_archive(source)


def input_name(source: Path | str) -> str:
    """What the capture of an input is called: the file's or folder's name, or the key of masks."""
    if not is_video_input(source):
        return Path(source).stem
    return Path(seen_name(source)).name or input_file(source).stem


def refuse_options(source: Path | str, method: str, options: Options) -> None:
    """Refuses options that do not go with the kind of input.

    Raises:
        ConfigError: one does not; says which and what to do.
    """
    belt_choice(options.belt)
    if holds_capture(input_file(source)):
        raise ConfigError(
            f"{source}: is a capture, not an input; give what it was fitted to, or see mocap2ctrl evaluate, simulate and convert"
        )
    if not is_video_input(source):
        for name in VIDEO_OPTIONS:
            if getattr(options, name) not in (None, False):
                flag = f"--{name.replace('_', '-')}"
                if Path(source).suffix.lower() not in {*MOTION_SUFFIXES, ""}:  # none: clips that are found by name
                    raise ConfigError(
                        f"{source}: unknown kind of input for {flag}; allowed are a video (.mp4, .mov, .avi, …), masks "
                        f"(FILE.npz:KEY or a folder of PNGs) and, without such options, a motion: {KINDS_TEXT}"
                    )
                raise ConfigError(f"{source}: is a motion; {flag} goes with videos and masks only, leave it out")
        if method == "growth":
            raise ConfigError(
                f"{source}: is a motion; method growth grows from silhouettes alone, choose incremental or batch"
            )
        return
    for name in MOTION_OPTIONS:
        if getattr(options, name) is not None:
            raise ConfigError(
                f"{source}: is no motion file; --{name.replace('_', '-')} goes with those only, leave it out"
            )
    if options.cycles != 1:
        raise ConfigError(f"{source}: is no motion file; --cycles goes with the loops of those only, leave it out")
    check_method(options.background_method)
    for name in ("background", "background_method", "slowmo"):
        if is_mask_spec(source) and getattr(options, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(f"{source}: holds masks; {flag} goes with videos only, leave it out")


def motion_prior(name: str, character: Character) -> Prior:
    """The prior of target poses that are fitted to a motion: none unless one is named."""
    return load_prior("identity" if name in ("auto", "none") else name, character)


def video_priors(name: str, character: Character) -> tuple[PosePrior, ...]:
    """The priors by which a video's person is tracked: the first for the search, of all the best for the result.

    Raises:
        ConfigError: none was asked for; PriorError: there is no such prior.
    """
    names = VIDEO_PRIORS if name == "auto" else (name,)
    loaded = [load_prior(one, character, others=("auto",)) for one in names if one.lower() not in NO_PRIOR]
    priors = tuple(prior for prior in loaded if isinstance(prior, PosePrior))
    if not priors:
        known = ", ".join(("auto", *shipped_priors()))
        raise ConfigError(
            f"prior is {name!r}; silhouettes alone do not tell a pose, allowed are {known}, or the path of a prior .npz"
        )
    return priors


def motion_capture(job: Job, prior: Prior, loaded: LoadedMotion) -> Capture:
    """The capture of a motion."""
    return Capture(
        folder=job.folder,
        character=job.character,
        prior=prior,
        reference=loaded.clip,
        source_points=loaded.source_points,
        config=job.config,
        run=job.run,
    )


def video_capture(
    job: Job, priors: Sequence[PosePrior], loaded: LoadedSilhouettes, on_progress: Callable[[float, str], None]
) -> Capture:
    """The capture of a video: tracks the person, or goes on with a track that was begun. The folder is ready."""
    return tracked_capture(
        job.folder,
        loaded.silhouettes,
        job.character,
        priors,
        job.config,
        job.run,
        job.workers,
        job.resume,
        on_progress,
    )


def check_duration(source: Path | str, seconds: float) -> None:
    """Refuses what is too short to be fitted.

    Raises:
        ConfigError: it is.
    """
    if seconds < SHORTEST_S:
        raise ConfigError(f"{source}: lasts {seconds:.2f} s; a fit needs at least {SHORTEST_S} s of motion")
