"""The Python API behind the command line: `fit`, `inspect`, `load`, `evaluate`, `simulate`, `push_test`, `convert` and more."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mocap2ctrl.character.model import load_character
from mocap2ctrl.errors import CameraError, ConfigError, MotionFileError, VideoError
from mocap2ctrl.evaluation import mjcf
from mocap2ctrl.evaluation.convert import convert  # noqa: F401, handed out as it is
from mocap2ctrl.evaluation.export import export_motion  # noqa: F401
from mocap2ctrl.evaluation.metrics import Evaluation, evaluate_replay, judged_seconds, verdict
from mocap2ctrl.evaluation.push_test import push_test  # noqa: F401
from mocap2ctrl.evaluation.reference import load_reference
from mocap2ctrl.evaluation.replay import Replay, replay
from mocap2ctrl.evaluation.surroundings import Place, placed
from mocap2ctrl.evaluation.video import evaluate_video, video_judged_seconds, video_part, video_warnings
from mocap2ctrl.fit.capture import Capture, load_capture, load_settings
from mocap2ctrl.fit.config import FitConfig, budget
from mocap2ctrl.fit.crew import Crew, default_workers, open_crew
from mocap2ctrl.fit.divergence import Divergence, DivergenceReplay, replay_divergence
from mocap2ctrl.fit.divergence_file import divergence_path, load_divergence
from mocap2ctrl.fit.inputs import (
    Job,
    Options,
    check_duration,
    input_name,
    is_video_input,
    motion_capture,
    motion_prior,
    refuse_options,
    video_capture,
    video_priors,
)
from mocap2ctrl.fit.run import FitOutcome, FitProgress, cpu_seconds, fit_capture
from mocap2ctrl.fit.video import video_config
from mocap2ctrl.motion.load import LoadedMotion, load_motion
from mocap2ctrl.motion.stated import NOTHING_STATED, Stated
from mocap2ctrl.prior.pca import PosePrior
from mocap2ctrl.simulation.choose import available_engines, make_engine
from mocap2ctrl.simulation.engine import Engine
from mocap2ctrl.simulation.pushes import Push
from mocap2ctrl.video.belt import belt_choice, on_belt
from mocap2ctrl.video.camera_file import load_camera
from mocap2ctrl.video.choice import person_at
from mocap2ctrl.video.silhouettes import LoadedSilhouettes, load_silhouettes

if TYPE_CHECKING:
    from mocap2ctrl.report.inspection import Inspection

EVALUATION_FPS = 120.0

UNSEEN_END_S = 0.05
"""So much of a motion's end may be missed without a word."""


@dataclass(frozen=True, eq=False)
class FitResult:
    """A finished fit and how good it is.

    Attributes:
        capture: the folder's contents.
        outcome: effort spent.
        evaluation: against what it was fitted to, and a video's reference if one was given.
        replay: the simulation that was evaluated.
        warnings: what a user should know before trusting the numbers.
        elsewhere: the same controller in the other engines, by name.
    """

    capture: Capture
    outcome: FitOutcome
    evaluation: Evaluation
    replay: Replay
    warnings: tuple[str, ...]
    elsewhere: Mapping[str, Evaluation]


def fit(
    source: Path | str,
    output: Path | str | None = None,
    *,
    config: FitConfig | None = None,
    seed: int | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    crew: Crew | None = None,
    engine: str = "mujoco",
    also_in: str | None = None,
    prior: str = "auto",
    height_m: float | None = None,
    time_range: tuple[float, float] | None = None,
    fps: float | None = None,
    cycles: int = 1,
    torque_scale: float = 1.0,
    camera: Path | str | None = None,
    background: Path | str | None = None,
    person: str | Sequence[float] | None = None,
    masks: bool = False,
    allow_ground: bool = False,
    reference: Path | str | None = None,
    slowmo: float | None = None,
    belt: str | float | None = None,
    keypoints: Path | str | None = None,
    background_method: str | None = None,
    unit: str | float | None = None,
    up: str | None = None,
    joint_map: Path | str | Mapping[str, str] | None = None,
    skeleton: Path | str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    command: str = "",
    on_progress: Callable[[FitProgress], None] = lambda progress: None,
    on_input: Callable[[LoadedMotion | LoadedSilhouettes], None] = lambda loaded: None,
    on_preparation: Callable[[str, float], None] = lambda what, share: None,
) -> FitResult:
    """Fits a physics controller to a video, to masks, or to a motion, and writes a capture folder.

    Args:
        source: a video; a folder of PNGs or `FILE.npz:KEY` with masks; a motion file of any kind in `motion.formats`, or the name
            of a DeepMimic clip that pybullet ships.
        output: the capture's folder; `captures/<name>` if not given.
        config: settings; the default budget if not given. `seed` and a motion's `fps` override its own. For a video, weights
            that are motion capture's defaults count as not given.
        seed: of all random numbers.
        workers: processes on this machine; all cores if not given. Does not change the result.
        scheduler: evaluate on a cluster instead: `tcp://HOST:PORT` of a Dask scheduler, or `mpi` in an MPI job.
        crew: who evaluates, of `workers` and `scheduler`, if it was opened before; else it is opened here.
        engine: name of the physics engine.
        also_in: name of another engine in which every controller is judged too, so that the result performs in both; costs are the
            means over the two.
        prior: `auto`, `none`, or the name or path of a pose prior; `auto` is none for a motion and, for a video, which
            cannot do without one, the activity's under which the track is most likely.
        height_m: of the simulated body.
        time_range: seconds of the input to use.
        fps: frames a second: that the objective looks at, for a motion; to use of a video; of masks whose file does not say. Of a
            motion file whose own rate cannot be true it is the rate.
        cycles: how often a motion's loop is repeated, or the best cycle of a motion that is none.
        torque_scale: factor on the torque bounds.
        camera: that saw a video or masks, `FILE.toml` or `FILE.toml:NAME`; the file of the input's name if not given, and
            if there is none, the camera is estimated from the person's heads and feet.
        background: a picture of a video's empty scene.
        person: which one, where there are several: `"X,Y"` or `"X,Y@T"` or these numbers, pixels of the input's picture and
            seconds; without a time, in the first frame in which the most people are seen.
        masks: a video holds masks, white = person; without it, those in black and white or with an alpha channel do.
        allow_ground: whether the person in a video may touch the ground with more than the legs without falling.
        reference: the true motion of a video, for the evaluation only; see `evaluate`.
        slowmo: how often slower than life a video plays; by default what the file says, or 1.
        belt: that the person of a video, or of a motion in place, walks or runs on: `none`, its speed in m/s, or `auto`
            (the default) for the one that is evident from feet that slide back. Motions are over the belt, as if it rested.
        keypoints: points of the body in a video's frames, or those of masks: a folder of OpenPose's JSON, MediaPipe's landmarks, a
            TRC in pixels, or clicks on a few frames; see docs/keypoints.md.
        background_method: how the empty scene is found: plate, empty, median, mog2, key or motion; chosen if not given.
        unit: of length of a motion file: m, dm, cm, mm, inch, ft, cmu, or metres a unit; inferred if not given.
        up: a motion file's up axis: x, y, z, -x, -y or -z; inferred if not given.
        joint_map: which joint of a motion file is which part of the body: a file as `inspect` writes it, or names by part.
        skeleton: the ASF of an AMC; the one beside it if not given.
        resume: go on with an interrupted fit in `output`, or, where `config` asks to refine it or to make it robust, with a
            finished one that was not.
        overwrite: replace a capture in `output`, which is deleted once the new input has been accepted.
        command: what the user typed, for the provenance.
        on_progress, on_input: told how the fit goes, and what was understood of the input.
        on_preparation: told what is being done before the fit, and the share of it that is done.

    Raises:
        Mocap2CtrlError: input, settings or folder cannot be used; says why.
    """
    from mocap2ctrl.report.capture import write_outputs  # plots and video only when they are wanted
    from mocap2ctrl.report.scene import footage_of

    begun, cpu = time.perf_counter(), cpu_seconds()
    options = Options(
        prior=prior,
        time_range=time_range,
        fps=fps,
        cycles=cycles,
        camera=camera,
        background=background,
        background_method=background_method,
        skeleton=skeleton,
        person=person,
        masks=masks,
        allow_ground=allow_ground,
        reference=reference,
        slowmo=slowmo,
        belt=belt,
        keypoints=keypoints,
        height_m=height_m,
        unit=unit,
        up=up,
        joint_map=joint_map,
    )
    seen = is_video_input(source)
    config = config or budget("default")
    config = replace(config, seed=config.seed if seed is None else seed)
    refuse_options(source, config.method, options)
    if not 0.01 <= torque_scale <= 10:
        raise ConfigError(f"torque scale is {torque_scale}; allowed is 0.01 to 10")
    character = load_character(height_m=height_m)
    make_engine(engine, character)
    if also_in is not None:
        if also_in == engine:
            raise ConfigError(f"the fit is in engine {engine!r} and also in {also_in!r}; name another one, or none")
        make_engine(also_in, character)
    run = {
        "engine": engine,
        "also_in": [] if also_in is None else [also_in],
        "torque_scale": float(torque_scale),
        "cycles": cycles,
        "command": command,
    }
    if seen:
        config, run["allow_ground"] = video_config(config), allow_ground
    folder = capture_folder(source, output)
    job = Job(source, folder, character, config, run, workers or default_workers(), resume, overwrite)
    job.keep(source, reference, camera, background, keypoints, joint_map, skeleton)
    begin = _begin_video if seen else _begin_motion
    # Before the long work: a cluster that cannot be used is told at once.
    with open_crew(workers, scheduler) if crew is None else nullcontext(crew) as evaluating:
        capture, loaded = begin(job, options, on_input, on_preparation)
        on_preparation("compiling and starting workers", 0.0)
        outcome = fit_capture(capture, evaluating, resume, on_progress)
    core = cpu_seconds() - cpu + outcome.remote_s
    outcome = replace(outcome, wall_s=time.perf_counter() - begun, core_s=core)  # masks and track included
    evaluation, replayed = evaluate(outcome.capture, reference=reference)
    elsewhere = cross_check(outcome.capture, reference=reference)
    warnings = (
        *video_warnings(outcome.capture, evaluation, replayed),
        *engine_warnings(outcome.capture, evaluation, elsewhere),
        *loaded.warnings,
        *capture_warnings(outcome.capture, reference),
    )
    effort = {"evaluations": outcome.evaluations, "wall_s": outcome.wall_s, "core_s": outcome.core_s}
    if outcome.recorded:
        effort["recorded"] = outcome.recorded
    verdicts = {f"in_{name}": verdict(other) for name, other in elsewhere.items()}
    seen_by = loaded if isinstance(loaded, LoadedSilhouettes) else None
    write_outputs(
        outcome.capture,
        evaluation,
        replayed,
        {**effort, **verdicts},
        warnings,
        footage=None if seen_by is None else footage_of(seen_by),
        notes=() if seen_by is None else seen_by.notes,
    )
    return FitResult(outcome.capture, outcome, evaluation, replayed, warnings, elsewhere)


TellInput = Callable[[LoadedMotion | LoadedSilhouettes], None]
TellPreparation = Callable[[str, float], None]


def _begin_motion(
    job: Job, options: Options, on_input: TellInput, on_preparation: TellPreparation
) -> tuple[Capture, LoadedMotion | LoadedSilhouettes]:
    """The capture of a motion."""
    prior = motion_prior(options.prior, job.character)
    given, belt = job.config, belt_choice(options.belt)
    job, refusal = _at_rate(job, options.fps)
    try:
        loaded = load_motion(
            job.source,
            job.character,
            time_range=options.time_range,
            cycles=options.cycles,
            belt=belt,
            stated=options.stated,
        )
    except MotionFileError as error:
        raise refusal or error from None
    if "rate" in loaded.said:  # then it was the file's rate that was given
        job = replace(job, config=given)
    elif refusal is not None:
        raise refusal
    check_duration(job.source, loaded.clip.duration_s)
    job.make_room()
    on_input(loaded)
    return motion_capture(job, prior, loaded), loaded


def _at_rate(job: Job, fps: float | None) -> tuple[Job, ConfigError | None]:
    """The job with an objective that looks at `fps` frames a second; unchanged, with the refusal, if it cannot."""
    if fps is None:
        return job, None
    try:
        return replace(job, config=replace(job.config, fps=fps)), None
    except ConfigError as error:
        return job, error


def _begin_video(
    job: Job, options: Options, on_input: TellInput, on_preparation: TellPreparation
) -> tuple[Capture, LoadedMotion | LoadedSilhouettes]:
    """The capture of a video or masks, tracked."""
    priors = video_priors(options.prior, job.character)
    job.check_folder()
    if options.reference is not None:
        load_reference(options.reference, job.character.height_m)  # a bad one is told before the long work
    loaded = _seen(job.source, options, on_preparation)
    check_duration(job.source, (len(loaded.silhouettes) - 1) / loaded.silhouettes.fps)
    job.make_room()
    on_input(loaded)
    capture = video_capture(job, priors, loaded, lambda share, what: on_preparation(f"tracking: {what}", share))
    return capture, loaded


def inspect(
    source: Path | str,
    *,
    height_m: float | None = None,
    time_range: tuple[float, float] | None = None,
    fps: float | None = None,
    camera: Path | str | None = None,
    background: Path | str | None = None,
    background_method: str | None = None,
    skeleton: Path | str | None = None,
    person: str | Sequence[float] | None = None,
    masks: bool = False,
    slowmo: float | None = None,
    belt: str | float | None = None,
    keypoints: Path | str | None = None,
    unit: str | float | None = None,
    up: str | None = None,
    joint_map: Path | str | Mapping[str, str] | None = None,
    workers: int | None = None,
    on_step: TellPreparation = lambda what, share: None,
) -> Inspection:
    """What is understood of an input before a fit; `write` of the result makes a page and a picture of it.

    Footage that a fit refuses is not refused here as long as its frames can be shown: `error` says why.

    Args:
        source: as for `fit`, and so are the options that say how it is to be read.
        workers: threads; they do not change the result.
        on_step: told what is being done, and the share of it that is done.

    Raises:
        Mocap2CtrlError: nothing can be shown of the input, or an option cannot be used; says why.
    """
    from mocap2ctrl.report.inspection_motion import motion_inspection
    from mocap2ctrl.report.inspection_refused import refused_inspection
    from mocap2ctrl.report.inspection_video import Asked, video_inspection
    from mocap2ctrl.track.first_look import first_look

    options = Options(
        time_range=time_range,
        fps=fps,
        camera=camera,
        background=background,
        background_method=background_method,
        skeleton=skeleton,
        person=person,
        masks=masks,
        slowmo=slowmo,
        belt=belt,
        keypoints=keypoints,
        height_m=height_m,
        unit=unit,
        up=up,
        joint_map=joint_map,
    )
    refuse_options(source, "incremental", options)
    character = load_character(height_m=height_m)
    command = fit_command(source, options)
    if not is_video_input(source):
        on_step("reading", 0.0)
        loaded = load_motion(source, character, time_range=time_range, belt=belt_choice(belt), stated=options.stated)
        inspection = motion_inspection(str(source), loaded, character, command)
        return replace(inspection, error=_too_short(source, loaded.clip.duration_s))
    if camera is not None:
        load_camera(camera)  # a mistake in an option is no property of the footage
    try:
        seen = _seen(source, options, on_step)
    except (VideoError, CameraError) as error:
        if background is not None and not Path(background).is_file():
            raise
        name = input_name(source)
        return refused_inspection(str(source), name, error, options)
    short = _too_short(source, (len(seen.silhouettes) - 1) / seen.silhouettes.fps)
    on_step("first pose", 0.0)
    prior = video_priors("auto", character)[0]
    poses = () if short else first_look(seen.silhouettes, character, prior, workers=workers or default_workers())
    on_step("drawing", 0.0)
    inspection = video_inspection(Asked(str(source), input_name(source), command), seen, character, poses)
    return replace(inspection, error=short)


def _too_short(source: Path | str, seconds: float) -> str | None:
    """Why an input of so many seconds cannot be fitted; None if it can."""
    try:
        check_duration(source, seconds)
    except ConfigError as error:
        return str(error)
    return None


def fit_command(source: Path | str, options: Options) -> str:
    """What to type to fit an input."""
    person = person_at(options.person)
    given = {
        "--camera": options.camera,
        "--background": options.background,
        "--background-method": options.background_method,
        "--person": None if person is None else str(person),
        "--keypoints": options.keypoints,
        "--belt": options.belt,
        "--slowmo": options.slowmo,
        "--time-range": options.time_range,
        "--fps": options.fps,
        "--height": options.height_m,
        "--unit": options.unit,
        "--up": options.up,
        "--joint-map": None if isinstance(options.joint_map, Mapping) else options.joint_map,
        "--skeleton": options.skeleton,
    }
    words: list[object] = ["mocap2ctrl", "fit", source, *(["--masks"] if options.masks else [])]
    for flag, value in given.items():
        if value is not None:
            parts = value if isinstance(value, tuple) else (value,)
            words += [flag, *(f"{part:g}" if isinstance(part, int | float) else part for part in parts)]
    return shlex.join(str(word) for word in words)


def _seen(source: Path | str, options: Options, progress: TellPreparation) -> LoadedSilhouettes:
    """A video, or masks, as the options say that it is to be read."""
    loaded = load_silhouettes(
        source,
        options.camera,
        fps=options.fps,
        time_range=options.time_range,
        background=options.background,
        method=options.background_method,
        person=options.person,
        as_masks=options.masks,
        slowmo=options.slowmo,
        height_m=options.height_m,
        keypoints=options.keypoints,
        progress=progress,
    )
    return on_belt(loaded, belt_choice(options.belt))


def capture_folder(source: Path | str, output: Path | str | None = None) -> Path:
    """Where `fit` puts the capture of `source`: `output`, or `captures/<name>`."""
    return Path(output) if output is not None else Path("captures") / input_name(source)


def load(folder: Path | str) -> Capture:
    """Reads a capture folder; see `fit.capture.load_capture`."""
    return load_capture(folder)


def engine_for(capture: Capture, engine: str | None = None, torque_scale: float | None = None) -> Engine:
    """The engine that a capture was fitted in, or another; with its torque bounds, or others."""
    scale = capture.torque_scale if torque_scale is None else torque_scale
    return make_engine(engine or capture.engine_name, capture.character, torque_scale=scale)


def evaluate(
    capture: Capture,
    *,
    reference: Path | str | None = None,
    engine: str | None = None,
    environment: Place | None = None,
) -> tuple[Evaluation, Replay]:
    """Simulates a capture's controller and compares it with what it was fitted to, or with the motion `reference`.

    A video's capture is compared with its silhouettes and its track; with a `reference` (a motion file, or an .npz as
    `write_motion` writes it, with or without `points_m` of the body that was filmed) joint errors are told too. In another
    `environment` (see `simulate`) the comparison is with what was done on level ground.
    """
    if capture.silhouettes is not None:
        truth = (
            None if reference is None else load_reference(reference, capture.character.height_m, video_part(capture))
        )
        run = _judged(capture, video_judged_seconds(capture, truth), engine, environment)
        return evaluate_video(capture, run, truth), run
    clip, points = capture.reference, capture.source_points
    if reference is not None:
        stated = _stated_of(capture, reference)
        loaded = load_motion(reference, capture.character, stated=stated)
        own, other = (clip.provenance.get("sha256") for clip in (capture.reference, loaded.clip))
        if own == other:  # its own input: the part that it was fitted to
            cycles, belt = int(capture.run.get("cycles", 1)), capture.reference.provenance.get("belt")
            part = _time_range(capture)
            loaded = load_motion(reference, capture.character, time_range=part, cycles=cycles, belt=belt, stated=stated)
        clip, points = loaded.clip, loaded.source_points
    clip = replace(clip, loop=False)
    run = _judged(capture, judged_seconds(clip), engine, environment)
    return evaluate_replay(capture.character, run, clip, points), run


def cross_check(capture: Capture, *, reference: Path | str | None = None) -> dict[str, Evaluation]:
    """A capture's controller in each engine that is installed beside the one it was fitted in, by name; see `evaluate`."""
    others = [name for name in available_engines() if name != capture.engine_name]
    return {name: evaluate(capture, reference=reference, engine=name)[0] for name in others}


def engine_warnings(capture: Capture, evaluation: Evaluation, elsewhere: Mapping[str, Evaluation]) -> tuple[str, ...]:
    """Sentences on controllers that survive in one simulator only."""
    if evaluation.fell:
        return ()
    return tuple(
        f"in engine {name!r} the controller falls at {other.fell_at_s:.2f} s: it depends on details of {capture.engine_name!r}"
        for name, other in elsewhere.items()
        if other.fell_at_s is not None
    )


def _stated_of(capture: Capture, reference: Path | str) -> Stated:
    """What was said of the capture's own input, if `reference` is that file."""
    clip = capture.reference.provenance
    if not Path(reference).is_file() or sha256(Path(reference).read_bytes()).hexdigest() != clip.get("sha256"):
        return NOTHING_STATED
    return Stated(**clip.get("stated", {}))


def _judged(capture: Capture, seconds: float, engine: str | None, environment: Place | None) -> Replay:
    return replay(*placed(capture, environment, engine, None), seconds + 0.1, fps=EVALUATION_FPS)


def _time_range(capture: Capture) -> tuple[float, float] | None:
    """The part of its input that a capture was fitted to, seconds; None for all."""
    values = capture.reference.provenance.get("time_range_s")
    return None if not values else (float(values[0]), float(values[1]))


def simulate(
    capture: Capture,
    seconds: float | None = None,
    *,
    fps: float = 60.0,
    pushes: tuple[Push, ...] = (),
    torque_limit: float | None = None,
    engine: str | None = None,
    environment: Place | None = None,
) -> Replay:
    """Replays a capture's controller for `seconds` (its clip's length if not given), pushed or weakened if asked for.

    Args:
        capture: whose controller.
        seconds: how long.
        fps: frames a second of the result.
        pushes: forces from outside.
        torque_limit: factor on the torque bounds of the fit.
        engine: another one than that of the fit.
        environment: an `Environment`, a TOML file of one, or the name of one that the package ships (docs/environments.md); level
            ground if not given. It is laid out from where the controller starts.

    Raises:
        ConfigError: there is no such environment, or it is not for this character.
        EngineError: no such engine, or none that has such an environment.
    """
    duration = capture.reference.duration_s if seconds is None else seconds
    return replay(*placed(capture, environment, engine, torque_limit), duration, fps=fps, pushes=pushes)


def replay_diverged(folder: Path | str, number: int = 1) -> tuple[Divergence, DivergenceReplay]:
    """A simulation that diverged during the fit of a capture, from 1, and what it does when it is simulated again.

    Raises:
        CaptureError: there is none of that number, or its file is damaged.
    """
    load_settings(Path(folder))  # else it is no capture
    divergence = load_divergence(divergence_path(Path(folder), number))
    return divergence, replay_divergence(divergence)


def export_mjcf(
    capture: Capture,
    model: Path | str | None = None,
    *,
    fps: float | None = None,
    seconds: float | None = None,
    engine: str | None = None,
    overwrite: bool = False,
) -> mjcf.MjcfExport:
    """Writes a capture's character, and what its controller does, for MuJoCo; see `evaluation.mjcf.export_mjcf`."""
    place = None if model is None else Path(model)
    chosen = engine_for(capture, engine)
    return mjcf.export_mjcf(capture, chosen, place, fps=fps, seconds=seconds, overwrite=overwrite)


def capture_warnings(capture: Capture, reference: Path | str | None = None) -> tuple[str, ...]:
    """What a user should know before trusting a capture's numbers, against `reference` if one is given."""
    return (*unseen_end(capture), *prior_warnings(capture, reference))


def unseen_end(capture: Capture) -> tuple[str, ...]:
    """What is told of a motion's end where the objective's last frame is well before it."""
    left_s, fps = capture.reference.duration_s - capture.objective_clip.duration_s, capture.config.fps
    if left_s < UNSEEN_END_S:
        return ()
    return (
        f"the last {left_s:.2f} s are not looked at, less than a frame at {fps:g} a second; a higher --fps sees them",
    )


def prior_warnings(capture: Capture, reference: Path | str | None) -> tuple[str, ...]:
    """What a capture's prior may have known before."""
    if not isinstance(capture.prior, PosePrior):
        return ()
    name, known = repr(capture.prior.name), capture.prior.provenance
    if prior_contains(known, capture.reference.provenance):
        return (f"prior {name} was trained on this very clip; its error is not an honest test",)
    if capture.silhouettes is None or reference is None:
        return ()
    performed = load_reference(reference, capture.character.height_m).clip.provenance
    if prior_contains(known, performed):
        return (
            f"prior {name} was trained on the very motion that is performed in the video; its error is no honest test",
        )
    return ()


def prior_contains(prior: Mapping[str, Any], clip: Mapping[str, Any]) -> bool:
    """Whether a prior's provenance lists the file that a clip comes from."""
    digest = clip.get("sha256")
    return digest is not None and any(entry.get("sha256") == digest for entry in prior.get("clips", ()))
