"""From a video's silhouettes to a capture that `fit_capture` can fit: its reference is the track found in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import mocap2ctrl
from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import CaptureError
from mocap2ctrl.fit.capture import CHECKPOINT, TARGET, Capture, load_capture, load_settings, save_begun, save_inputs
from mocap2ctrl.fit.config import ASTRAY_CM, FitConfig, growth_weights, video_weights
from mocap2ctrl.fit.differing import other_settings
from mocap2ctrl.fit.key import camera_arrays, digest_of, keypoint_arrays
from mocap2ctrl.motion.load import ends_standing
from mocap2ctrl.objective.terms import Weights
from mocap2ctrl.prior.pca import PosePrior
from mocap2ctrl.track.tracker import Track, track
from mocap2ctrl.types import Silhouettes

TRACK_STATE = CHECKPOINT / "track.npz"


def video_config(config: FitConfig) -> FitConfig:
    """The settings for a video: what is still motion capture's default becomes the method's."""
    if config.method == "incremental" and config.astray_cm == 0.0:
        config = replace(config, astray_cm=ASTRAY_CM)
    if config.weights != Weights():
        return config
    if config.method == "growth":
        return replace(config, weights=growth_weights())
    return replace(config, weights=video_weights(short=config.generations < FitConfig().generations))


def tracked_capture(
    folder: Path,
    silhouettes: Silhouettes,
    character: Character,
    priors: Sequence[PosePrior],
    config: FitConfig,
    run: Mapping[str, Any],
    workers: int,
    resume: bool,
    on_progress: Callable[[float, str], None] = lambda share, what: None,
) -> Capture:
    """Tracks the person and saves the track in the capture's folder, or takes the one that an interrupted fit has saved.

    Args:
        folder: of the capture; ready.
        silhouettes: the evidence.
        character: a body of the person's height.
        priors: over poses; the first for the search, the best of them for the result.
        config: settings, weights included; see `video_config`.
        run: engine, torque scale and other options.
        workers: threads of the tracker; they do not change the result.
        resume: go on with what the folder holds.
        on_progress: told the share of the tracking that is done, and what is being done.

    Raises:
        CaptureError: the folder's fit was begun with another input, prior, seed, tracker settings or `allow_ground`.
    """
    key = track_key(silhouettes, character, priors, config)
    run = {**run, "track_key": key.hex()}
    if resume:
        begun, _ = load_settings(folder)
        if begun.get("track_key") != key.hex():
            raise CaptureError(other_settings(folder, config, run))
        was, now = (bool(options.get("allow_ground")) for options in (begun, run))
        if was != now:
            advice = "give --allow-ground again" if was else "leave --allow-ground out"
            raise CaptureError(
                f"{folder}: was begun {'with' if was else 'without'} --allow-ground; {advice}, or use --overwrite"
            )
        if (folder / TARGET).exists():
            return replace(load_capture(folder), folder=folder, config=config, run=run, controller=None)
    else:
        save_begun(folder, character, config, run)
    found = track(
        silhouettes,
        character,
        priors[0],
        others=priors[1:],
        seed=config.seed,
        workers=workers,
        config=config.tracking,
        checkpoint=folder / TRACK_STATE,
        key=key,
        on_progress=on_progress,
    )
    capture = video_capture(folder, silhouettes, found, config, run)
    save_inputs(capture)
    (folder / TRACK_STATE).unlink(missing_ok=True)
    return capture


def video_capture(
    folder: Path,
    silhouettes: Silhouettes,
    found: Track,
    config: FitConfig,
    run: Mapping[str, Any],
) -> Capture:
    """A capture, not yet fitted, whose reference is a track; arguments as for `tracked_capture`."""
    told = {"energy": found.energy, "parts": dict(found.parts), "hypotheses": list(found.hypotheses)}
    clip = replace(
        found.clip,
        name=silhouettes.name,
        start_s=float(silhouettes.provenance.get("start_s", 0.0)),
        loop=False,
        ends_standing=ends_standing(found.clip, found.character),
        provenance={**silhouettes.provenance, **found.clip.provenance, "track": told},
    )
    return Capture(
        folder=folder,
        character=found.character,
        prior=found.prior,
        reference=clip,
        source_points=np.full((len(clip), len(found.character.evaluation_points), 3), np.nan),
        config=config,
        run=run,
        silhouettes=silhouettes,
        girth=float(found.girth),
    )


def track_key(silhouettes: Silhouettes, character: Character, priors: Sequence[PosePrior], config: FitConfig) -> bytes:
    """Digest of all that a track depends on."""
    settings = {
        "version": mocap2ctrl.__version__,
        "seed": config.seed,
        "tracking": asdict(config.tracking),
        "character": character.description,
        "fps": silhouettes.fps,
        "masks": silhouettes.masks.shape,
    }
    arrays: list[npt.NDArray[Any]] = [
        *camera_arrays(silhouettes.camera),
        *(array for prior in priors for array in (prior.basis, prior.mean, prior.sigma, prior.exemplars)),
        np.packbits(silhouettes.masks),
        silhouettes.ground_velocity,
        *keypoint_arrays(silhouettes.keypoints),
    ]
    return digest_of(settings, arrays)
