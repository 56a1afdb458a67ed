"""From a video's silhouettes and the track found in them to a capture that `fit_capture` can fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.fit.capture import Capture
from mocap2ctrl.fit.config import FitConfig, growth_weights, video_weights
from mocap2ctrl.motion.load import ends_standing
from mocap2ctrl.objective.terms import Weights
from mocap2ctrl.prior.pca import Prior
from mocap2ctrl.types import MotionClip, Silhouettes


class TrackedBody(Protocol):
    """What a fit needs of a track.

    Attributes:
        character: the body, with the person's limb lengths.
        clip: its motion at the silhouettes' rate, z up, on the ground.
        girth: factor on the radii of the body's shape in silhouettes.
    """

    @property
    def character(self) -> Character: ...  # noqa: D102
    @property
    def clip(self) -> MotionClip: ...  # noqa: D102
    @property
    def girth(self) -> float: ...  # noqa: D102


def video_capture(
    folder: Path,
    silhouettes: Silhouettes,
    track: TrackedBody,
    prior: Prior,
    config: FitConfig,
    run: Mapping[str, Any],
) -> Capture:
    """A capture, not yet fitted, whose reference is a track.

    Args:
        folder: where it will live.
        silhouettes: the evidence.
        track: the motion found in it.
        prior: that the track was found with.
        config: settings, weights included; see `video_config`.
        run: engine, torque scale and other options.
    """
    clip = replace(
        track.clip,
        name=silhouettes.name,
        loop=False,
        ends_standing=ends_standing(track.clip, track.character),
        provenance={**silhouettes.provenance, **track.clip.provenance},
    )
    return Capture(
        folder=folder,
        character=track.character,
        prior=prior,
        reference=clip,
        source_points=np.full((len(clip), len(track.character.evaluation_points), 3), np.nan),
        config=config,
        run=run,
        silhouettes=silhouettes,
        girth=float(track.girth),
    )


def video_config(config: FitConfig) -> FitConfig:
    """The settings for a video; weights that are still motion capture's defaults become those of the method."""
    if config.weights != Weights():
        return config
    return replace(config, weights=growth_weights() if config.method == "growth" else video_weights())
