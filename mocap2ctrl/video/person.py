"""One person among all that moves: the one to fit, alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mocap2ctrl.errors import VideoError
from mocap2ctrl.types import Masks
from mocap2ctrl.video.bodies import JOIN, Body, Frame, gap, joined
from mocap2ctrl.video.border import SHORTEST_S, stretches
from mocap2ctrl.video.choice import Clip, PersonAt, chosen_track
from mocap2ctrl.video.others import Other, others_beside, require_one, seen_too
from mocap2ctrl.video.tracks import Scene, Track, follow

LONG = 0.5
"""Of those seen for at least this share of the longest time, the largest body is the person."""
MOMENT_TOUCHED_S = 0.2
"""People who touch each other for less do not end the range."""
SPECK = 0.005
"""A part below this share of the body's area, and away from it, is no piece of it in a user's mask either."""
SAME_VISITOR = 0.2
"""Of the person's area that somebody must have who is there before or after."""


@dataclass(frozen=True, eq=False)
class Person:
    """The person that was followed.

    Attributes:
        masks: (T, H, W).
        apart: (T,) whether no other person touches it.
        notes: who else is there, sentences for the user.
    """

    masks: Masks
    apart: npt.NDArray[np.bool_]
    notes: tuple[str, ...]


def find_person(masks: Masks, clip: Clip, at: PersonAt | None = None) -> Person:
    """Follows all bodies, and keeps the one to fit, with what is near to it.

    Args:
        masks: (T, H, W) of all that is foreground.
        clip: what they are of.
        at: which person, where there are several.

    Raises:
        VideoError: nobody of a person's size is there; or several people, or nobody where `at` says; tells where and when.
    """
    scene = follow(masks, clip.fps)
    if not scene.tracks:
        raise VideoError(
            f"{clip.where}: no moving person found; somebody must move before a still camera, and fill at least a tenth of "
            f"its height"
        )
    people = [track for track in scene.tracks if scene.moves(track)] or list(scene.tracks)
    return _one(scene, people, clip, at)


def refuse_several(masks: Masks, clip: Clip) -> None:
    """Refuses masks (T, H, W) of all that is foreground if two people could be meant.

    Raises:
        VideoError: tells where and when.
    """
    if follow(masks, clip.fps).tracks:
        find_person(masks, clip)


def _one(scene: Scene, people: Sequence[Track], clip: Clip, at: PersonAt | None) -> Person:
    if at is not None:
        main, start = chosen_track(scene, people, clip, at)
        return _person(scene, [main], others_beside(scene, people, main), clip, around=start)
    main = _largest(scene, people)
    others = others_beside(scene, people, main)
    require_one(scene, main, others, clip)
    return _person(scene, _in_turn(scene, people, main), others, clip)


def users_person(masks: Masks, clip: Clip, at: PersonAt | None = None) -> Person:
    """The person in masks (T, H, W) that a user made: all that is white, but for specks and for other people.

    Raises:
        VideoError: there are several people, or nobody where `at` says; tells where and when.
    """
    scene = follow(masks, clip.fps, smallest=0.0)
    if at is not None:
        return _one(scene, scene.tracks, clip, at)
    main = _largest(scene, scene.tracks)
    others = others_beside(scene, scene.tracks, main)
    require_one(scene, main, others, clip)
    chain = _in_turn(scene, scene.tracks, main)
    person, result = _person(scene, chain, others, clip), masks.copy()
    for other in others:
        for t in other.track.alone():
            result[t] &= ~scene.mask(other.track, t)
    least = SPECK * scene.usual_area(main)
    for track in chain:
        for t in track.bodies:
            result[t] &= ~_specks(scene.frames[t], scene.body(track, t), least, JOIN * scene.height)
    return Person(result, person.apart, person.notes)


def _specks(frame: Frame, body: Body, least: float, reach: float) -> Masks:
    """(H, W) tiny parts that are far from the body."""
    far = [p.number for p in frame.parts if p.area < least and min(gap(p.box, own.box) for own in body.parts) > reach]
    return np.asarray(np.isin(frame.numbers, far)) if far else np.zeros(frame.numbers.shape, bool)


def _largest(scene: Scene, people: Sequence[Track]) -> Track:
    """The largest body of those that are seen for long; what is cut off by a border all the time only if there is no other."""
    inside = [track for track in people if len(scene.whole(track)) >= SHORTEST_S * scene.fps] or people
    longest = max(len(track.alone()) for track in inside)
    lasting = [track for track in inside if len(track.alone()) >= LONG * longest]
    return max(lasting, key=scene.usual_area)


def _in_turn(scene: Scene, people: Sequence[Track], main: Track) -> list[Track]:
    """The person's track, and those of bodies who are there before and after: it may be the same person."""
    area = scene.usual_area(main)
    chain, held = [main], set(main.bodies)
    for track in people:
        if held.isdisjoint(track.bodies) and scene.usual_area(track) >= SAME_VISITOR * area:
            chain.append(track)
            held |= set(track.bodies)
    return chain


def _person(
    scene: Scene, chain: Sequence[Track], others: Sequence[Other], clip: Clip, around: int | None = None
) -> Person:
    """The masks of a person, alone.

    Args:
        scene: all that was followed.
        chain: the person's tracks.
        others: who else is there.
        clip: what the masks are of.
        around: a frame; before and after another person touches this one it may be somebody else, and is not kept.
    """
    count, shape = len(scene.frames), scene.frames[0].numbers.shape
    touched = np.zeros(count, bool)
    for other in others:
        if other.spoils:
            touched[list(other.touching)] = True
    apart = ~_lasting(touched, MOMENT_TOUCHED_S * scene.fps)
    first, end = 0, count
    if around is not None:
        first = max((t + 1 for t in range(around) if not apart[t]), default=0)
        end = min((t for t in range(around, count) if not apart[t]), default=count)
    masks = np.zeros((count, *shape), bool)
    for track in chain:
        for t, body in track.bodies.items():
            if first <= t < end and not touched[t]:
                masks[t] = joined(scene.frames[t], body, scene.height)
    return Person(masks, apart, (*_ended(clip, first, end, count), *seen_too(scene, others, clip)))


def _lasting(touched: npt.NDArray[np.bool_], least: float) -> npt.NDArray[np.bool_]:
    """Without the touches that end at once: those are gaps in which nothing is seen."""
    result = touched.copy()
    for a, b in stretches(touched, 1.0):
        result[a:b] = b - a >= least
    return result


def _ended(clip: Clip, first: int, end: int, count: int) -> tuple[str, ...]:
    """That the person touched another one, before or after whom nobody can tell who is who."""
    when = "another person touches this one at {:.2f} s; used {}"
    before = () if first == 0 else (when.format(clip.time_s(first - 1), "from there on"),)
    after = () if end == count else (when.format(clip.time_s(end), "up to there"),)
    return (*before, *after)


def same_person(masks: Masks, person: Person, fps: float) -> Masks:
    """Of new masks (T, H, W) of the same clip, in each frame the body that covers the person the most."""
    scene, result = follow(masks, fps), np.zeros_like(masks)
    for t, (frame, before) in enumerate(zip(scene.frames, person.masks, strict=True)):
        common = [np.count_nonzero(before & frame.mask(i)) for i in range(len(frame.bodies))]
        if any(common):
            result[t] = joined(frame, int(np.argmax(common)), scene.height)
    return result
