"""Runs an exported policy in plain MuJoCo: `mocap2ctrl export-policy learned.json -o policy`, then `python play_policy.py policy`.

It needs mujoco and numpy, and nothing of mocap2ctrl: copy it and build on it. From fragment to fragment it takes the first edge.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import mujoco
import numpy as np

FEET = ("left_foot", "right_foot")


def heading_turn(quaternion: np.ndarray) -> np.ndarray:
    """Rotation matrix that takes world vectors into the heading frame: the inverse of the twist about z."""
    angle = -2.0 * np.arctan2(quaternion[3], quaternion[0])
    return np.array([[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.0], [0.0, 0.0, 1.0]])


def features(model: mujoco.MjModel, data: mujoco.MjData, foot_points: np.ndarray) -> np.ndarray:
    """The 18 numbers of s: root tilt, root height, centre of mass and its velocity, feet, angular momentum."""
    mujoco.mj_forward(model, data)
    mujoco.mj_subtreeVel(model, data)
    root = model.body("pelvis").id
    turn = heading_turn(data.qpos[3:7])
    com, below = data.subtree_com[root], data.qpos[:3] * [1.0, 1.0, 0.0]
    tilt, upright = np.zeros(3), np.zeros(4)
    mujoco.mju_mat2Quat(upright, (turn @ data.xmat[root].reshape(3, 3)).ravel())
    mujoco.mju_quat2Vel(tilt, upright, 1.0)
    feet = [
        data.body(name).xpos + data.body(name).xmat.reshape(3, 3) @ point
        for name, point in zip(("left_foot", "right_foot"), foot_points, strict=True)
    ]
    vectors = [com - below, data.subtree_linvel[root], feet[0] - com, feet[1] - com, data.subtree_angmom[root]]
    return np.concatenate([tilt[:2], data.qpos[2:3], *(turn @ vector for vector in vectors)])


def is_down(model: mujoco.MjModel, data: mujoco.MjData, foot: str) -> bool:
    """Whether a foot, or its toes, touches the ground where the body is now."""
    mujoco.mj_fwdPosition(model, data)  # after a step contacts are those of its begin
    body = model.body(foot).id
    parts = [body, *np.flatnonzero(model.body_parentid == body)]
    touching = model.geom_bodyid[data.contact.geom[: data.ncon]]
    return bool(np.any(np.any(touching == 0, axis=1) & np.any(np.isin(touching, parts), axis=1)))


def play(folder: Path, seconds: float, *, view: bool = False) -> np.ndarray:
    """Simulates for some seconds, or until it falls; returns qpos after each step of 5 ms, (N + 1, 7 + J)."""
    policy = np.load(folder / "policy.npz")
    told = json.loads((folder / "policy.json").read_text("utf-8"))
    model = mujoco.MjModel.from_xml_path(str(folder / "character.xml"))
    model.dof_armature[6:] += policy["implicit_armature"]  # the servos' damping, implicit in time
    data = mujoco.MjData(model)
    following = {int(a): int(b) for a, b in policy["edges"][::-1]}  # the first edge of each
    k = 0
    data.qpos[:], data.qvel[:] = policy["start_qpos"][k], policy["start_qvel"][k]
    viewer = None
    if view:
        from mujoco.viewer import launch_passive

        viewer = launch_passive(model, data)
    frames = [data.qpos.copy()]
    while len(frames) <= round(seconds / told["time_step_s"]):
        action = policy["gain"][k] @ features(model, data, policy["foot_points"]) + policy["offset"][k]
        if np.linalg.norm(action) > told["fallen_action_rad"]:
            print(f"fell at {data.time:.2f} s")
            break
        limit = told["largest_action_rad"]
        offset = np.clip(action, -limit, limit) @ policy["action_hinges"]
        held = policy["targets"][policy["first_target"][k] : policy["first_target"][k + 1]] + offset
        each = round(policy["frame_s"][k] / told["time_step_s"])
        foot = policy["touchdown"][k]  # whose touchdown ends the fragment; -1: it lasts its time
        steps = len(held) * each
        for step in range(steps if foot < 0 else int(np.ceil(told["latest_touchdown"] * steps))):
            data.ctrl[:] = held[min(step // each, len(held) - 1)]
            mujoco.mj_step(model, data)
            frames.append(data.qpos.copy())
            if viewer is not None:
                viewer.sync()
            if foot >= 0 and is_down(model, data, FEET[foot]):
                break
        k = following[k]
    return np.array(frames[: round(seconds / told["time_step_s"]) + 1])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="what export-policy has written")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--view", action="store_true", help="show it in MuJoCo's viewer")
    parser.add_argument("-o", "--output", type=Path, help="write the trajectory to this .npy file")
    options = parser.parse_args()
    if not (options.folder / "policy.npz").is_file():
        parser.error(f"{options.folder}: holds no policy.npz; mocap2ctrl export-policy writes one")
    frames = play(options.folder, options.seconds, view=options.view)
    if options.output:
        np.save(options.output, frames)
    print(f"{len(frames) - 1} steps; the root went from {frames[0, :3].round(2)} to {frames[-1, :3].round(2)}")


if __name__ == "__main__":
    main()
