"""Plants the feet of a motion that stands on the ground already: they neither slide, float nor sink while they stand.

Each foot's path is made still where it stands (`foot_paths.py`), the pelvis is lowered where a leg would not reach, and
inverse kinematics of the legs follows both, within the joint limits. Nothing above the pelvis bends.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import distance_transform_edt, maximum_filter1d, uniform_filter1d

from mocap2ctrl.character.kinematics import clip_frames, segment_frames
from mocap2ctrl.character.model import SIDES, Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.clips import carried_on, cycle_turn
from mocap2ctrl.motion.foot_paths import foot_path
from mocap2ctrl.motion.inverse_kinematics import PointTargets, State, reach
from mocap2ctrl.motion.soles import soles
from mocap2ctrl.types import Array, Masks, MotionClip

SEAM_M = 0.1
"""How far a loop's feet may end from where the next period has them, for them to stand across the seam."""

STRAIGHT = 0.998
"""Share of the leg's length up to which it may be stretched, unless it is stretched further already."""
LOWERING_S = 0.12
MOST_LOWERED_M = 0.06

FIRM, STAY_WEIGHT = 1e3, 1e-3
"""Weights of the feet's places, and, in m^2 / rad^2, of the legs' angles."""
ITERATIONS = 12
EASE_S = 0.1
"""Time beside a contact within which a leg that swings may be stretched as one that stands."""
BENT_RAD = 0.1
LEG = ("thigh", "shank", "foot")
UP = np.array([0.0, 0.0, 1.0])


def plant(clip: MotionClip, character: Character, standing: Masks) -> State:
    """The motion with feet that stand still on z = 0 where they stand.

    Args:
        clip: the motion, on the ground; a loop is treated as one period of an endless motion.
        character: the body.
        standing: (T, 2, 2) whether heel and ball of the left and the right foot stand.

    Returns:
        root positions, root orientations and angles.
    """
    state = (clip.root_position, clip.root_orientation, clip.angles)
    if len(clip) < 2 or not np.any(standing):
        return state
    if not clip.loop or not _closes(clip, character):
        return _planted(character, state, standing, clip.fps)
    before, after = carried_on(clip, -1), carried_on(clip, 1)
    whole = [np.concatenate(parts) for parts in zip(before, state, after, strict=True)]
    ends = standing[:1] | standing[-1:]
    once = np.concatenate([ends, standing[1:-1], ends])
    often = np.concatenate([once[:-1], once, once[1:]])
    planted = _planted(character, (whole[0], whole[1], whole[2]), often, clip.fps)
    middle = slice(len(clip) - 1, 2 * len(clip) - 1)
    return planted[0][middle], planted[1][middle], planted[2][middle]


def _closes(clip: MotionClip, character: Character) -> bool:
    """The feet end where the next period begins; some files call a motion a loop that merely may be played again."""
    feet = [sole.segment for sole in soles(character)]
    first, last = (clip_frames(character, clip.cut(frame, frame + 1))[0][0, feet] for frame in (0, len(clip) - 1))
    ahead = rotations.rotate(cycle_turn(clip), first - clip.root_position[0]) + clip.root_position[-1]
    return bool(np.max(np.linalg.norm(ahead - last, axis=-1)) < SEAM_M)


def _planted(character: Character, state: State, standing: Masks, fps: float) -> State:
    """`plant` for a motion that is no loop."""
    positions, orientations = segment_frames(character, *state)
    paths = [
        foot_path(positions[:, s.segment], orientations[:, s.segment], s.local, s.radius, standing[:, side], fps)
        for side, s in enumerate(soles(character))
    ]
    lowered = _lowering(character, positions, [place for place, _ in paths], np.any(standing, axis=2), fps)
    down = lowered[:, None] * UP
    targets = _foot_targets(character, positions - down[:, None], paths, standing, fps)
    names = [character.segments[i].name.split("_")[-1] for i in character.hinge_segment]
    # From a knee that is bent a little, the descent ends with one that bends the way that knees do.
    guess = np.where([name == "shank" for name in names], np.maximum(state[2], BENT_RAD), state[2])
    start, legs = (state[0] - down, state[1], guess), np.isin(names, LEG)
    return reach(character, start, targets, state[2], stay_weight=STAY_WEIGHT, hinges=legs, iterations=ITERATIONS)


def _foot_targets(
    character: Character, positions: Array, paths: list[tuple[Array, Array]], standing: Masks, fps: float
) -> PointTargets:
    """Where the ends of heels and balls belong on the feet's `paths`, as far as legs reach from `positions` (T, S, 3)."""
    segments, local, world = [], [], []
    for side, (sole, (place, turned)) in enumerate(zip(soles(character), paths, strict=True)):
        ends = sole.local.reshape(-1, 3)
        swinging = _ease_away(np.any(standing[:, side], axis=1), fps)
        within = _within_reach(character, positions, place, SIDES[side], swinging)
        segments += [sole.segment] * len(ends)
        local.append(ends)
        world.append(within[:, None] + rotations.rotate(turned[:, None], ends))
    weight = np.full(len(segments), FIRM)
    return PointTargets(np.array(segments), np.concatenate(local), np.concatenate(world, axis=1), weight)


def _within_reach(character: Character, positions: Array, ankle: Array, side: str, swinging: Array) -> Array:
    """The ankle's path (T, 3), nearer to the hip where the leg would have to be longer than it may be.

    A leg that swings, `swinging` (T,) from 0 to 1, comes to its full length gently, so that its knee does not snap; one that
    stands does what it can.
    """
    hip, foot = (positions[:, character.segment_index(f"{side}_{part}")] for part in ("thigh", "foot"))
    apart, was = ankle - hip, np.linalg.norm(foot - hip, axis=1)
    wanted = np.maximum(np.linalg.norm(apart, axis=1), 1e-9)
    room = np.maximum(_longest(character, positions, side) - was, 1e-6)
    longer = wanted - was
    gentle = np.where(longer > 0.0, room * np.tanh(longer / room), longer)
    length = was + (1.0 - swinging) * np.minimum(longer, room) + swinging * gentle
    return np.asarray(hip + apart * (length / wanted)[:, None])


def _ease_away(standing: Masks, fps: float) -> Array:
    """(T,) from 0 where the foot stands to 1 a short while before and after."""
    if not np.any(standing):
        return np.ones(len(standing))
    share = np.clip(distance_transform_edt(~standing) / (fps * EASE_S), 0.0, 1.0)
    return np.asarray(share * share * (3.0 - 2.0 * share))


def _longest(character: Character, positions: Array, side: str) -> Array:
    """(T,) how far the ankle may be from the hip: as far as it is, or as a nearly straight leg reaches."""
    hip, knee, foot = (character.segment_index(f"{side}_{part}") for part in ("thigh", "shank", "foot"))
    length = sum(float(np.linalg.norm(character.segments[i].offset)) for i in (knee, foot))
    stretched = np.linalg.norm(positions[:, foot] - positions[:, hip], axis=1)
    return np.asarray(np.maximum(stretched, STRAIGHT * length))


def _lowering(character: Character, positions: Array, ankles: list[Array], standing: Masks, fps: float) -> Array:
    """(T,) how far the pelvis has to come down for the `ankles` of feet that are `standing` (T, 2) to be reached.

    Smooth, and never less than needed.
    """
    needed = np.zeros(len(positions))
    for side, ankle, stands in zip(SIDES, ankles, standing.T, strict=True):
        most = _longest(character, positions, side)
        apart = positions[:, character.segment_index(f"{side}_thigh")] - ankle
        upright = np.sqrt(np.maximum(most**2 - np.sum(apart[:, :2] ** 2, axis=1), 0.0))
        needed = np.where(stands, np.maximum(needed, apart[:, 2] - upright), needed)
    half = max(1, round(0.5 * LOWERING_S * fps))
    lowered = maximum_filter1d(np.clip(needed, 0.0, MOST_LOWERED_M), 4 * half + 1)
    return np.asarray(uniform_filter1d(uniform_filter1d(lowered, 2 * half + 1), 2 * half + 1))
