"""Plays the .xml that `mocap2ctrl convert` or `mocap2ctrl export-mjcf` wrote, with nothing but MuJoCo.

    python play_mjcf.py walk.xml              in MuJoCo's viewer, over and over
    python play_mjcf.py walk.xml --headless   prints where the head and the lowest foot are
"""

import sys
import time

import mujoco


def play(path: str) -> None:
    """Shows the keyframes in real time."""
    import mujoco.viewer  # needs a screen

    model = mujoco.MjModel.from_xml_path(path)
    data = mujoco.MjData(model)
    with mujoco.viewer.launch_passive(model, data) as viewer:
        while viewer.is_running():
            for key in range(model.nkey):
                mujoco.mj_resetDataKeyframe(model, data, key)
                mujoco.mj_forward(model, data)
                viewer.sync()
                if key + 1 < model.nkey:
                    time.sleep(model.key_time[key + 1] - model.key_time[key])


def tell(path: str) -> None:
    """Prints a line a keyframe: time, the head's place, the height of the lower foot's joint."""
    model = mujoco.MjModel.from_xml_path(path)
    data = mujoco.MjData(model)
    for key, seconds in enumerate(model.key_time):
        data.qpos, data.qvel = model.key_qpos[key], model.key_qvel[key]
        mujoco.mj_forward(model, data)
        x, y, z = data.body("head").xpos
        foot = min(data.body(f"{side}_foot").xpos[2] for side in ("left", "right"))
        print(f"{seconds:.3f} {x:.6f} {y:.6f} {z:.6f} {foot:.6f}")


if __name__ == "__main__":
    (tell if "--headless" in sys.argv else play)(sys.argv[1])
