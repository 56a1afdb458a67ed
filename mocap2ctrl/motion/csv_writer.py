"""Writes a clip as CSV: one row a frame, one column a quantity with its unit in the name, as `pandas.read_csv` likes it.

World axes: z up, x forward, y left. Columns: `frame`, `time_s` in the source; the place of every segment's origin, `pelvis_x_m`;
the pelvis's orientation, `pelvis_qw` to `pelvis_qz`; hinge angles, `left_shank_flexion_rad`; `left_contact` and
`right_contact`, 0 or 1.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mocap2ctrl.character.kinematics import clip_frames
from mocap2ctrl.character.model import SIDES, Character
from mocap2ctrl.files import write_text
from mocap2ctrl.motion.contacts import foot_contacts
from mocap2ctrl.types import MotionClip


def write_csv(path: Path | str, clip: MotionClip, character: Character) -> None:
    """Write `clip` to a CSV file, under a temporary name first, so that a reader never sees half a file."""
    positions, orientations = clip_frames(character, clip)
    root = character.segment_names[0]
    columns = [
        "frame",
        "time_s",
        *(f"{name}_{axis}_m" for name in character.segment_names for axis in "xyz"),
        *(f"{root}_q{part}" for part in "wxyz"),
        *(f"{name.replace('.', '_')}_rad" for name in character.hinge_names),
        *(f"{side}_contact" for side in SIDES),
    ]
    numbers = np.concatenate([positions.reshape(len(clip), -1), orientations[:, 0], clip.angles], axis=1)
    contacts = foot_contacts(clip, character)
    lines = [",".join(columns)]
    for frame, time_s in enumerate(clip.times_s):
        row = [f"{frame}", f"{time_s:.9f}", *(f"{value:.7f}" for value in numbers[frame])]
        lines.append(",".join([*row, *(f"{touches:d}" for touches in contacts[frame])]))
    write_text(path, "\n".join(lines) + "\n")
