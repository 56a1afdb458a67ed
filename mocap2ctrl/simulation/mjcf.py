"""The character and its ground as an MJCF model: what MuJoCo compiles."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.simulation.engine import Servo

FEET = ("left", "right")

SERVO_IMPEDANCE = "0.995 0.995 0.001 0.5 2"
"""Softness of the servo rows (the paper's s > 0): a step removes alpha to within 1 %, at half the cost of 0.999."""


def build_mjcf(character: Character, time_step_s: float, servo: Servo = "velocity") -> str:
    """MJCF text of `character` on flat ground.

    With velocity servos every hinge has a friction-loss row, which the engine turns into the bounded servo of Vondrak Eq. (5)
    and (15). With PD servos every hinge has an actuator whose gains, bounds and damping the engine sets, and nothing is carried
    over from step to step but positions and velocities. With none the model is plain: torques enter from outside only.
    """
    root = ElementTree.Element("mujoco", model=character.name)
    ElementTree.SubElement(root, "compiler", angle="radian", autolimits="true")
    option = ElementTree.SubElement(
        root,
        "option",
        timestep=repr(time_step_s),
        integrator="Euler",
        solver="Newton",
        cone="pyramidal",
        iterations="50",
        ls_iterations="50",
        tolerance="1e-10",
    )
    flag = ElementTree.SubElement(
        option, "flag", eulerdamp="disable", island="disable", autoreset="disable", filterparent="enable"
    )
    world = ElementTree.SubElement(root, "worldbody")
    ElementTree.SubElement(
        world, "geom", name="ground", type="plane", size="0 0 1", contype="1", conaffinity="0", condim="3",
        friction=f"{character.friction} 0.005 0.0001",
    )  # fmt: skip
    bodies: list[ElementTree.Element] = []
    for index, segment in enumerate(character.segments):
        parent = world if index == 0 else bodies[segment.parent]
        body = ElementTree.SubElement(parent, "body", name=segment.name, pos=_numbers(segment.offset))
        bodies.append(body)
        if index == 0:
            ElementTree.SubElement(body, "freejoint", name="root")
        for hinge in segment.hinges:
            ElementTree.SubElement(
                body, "joint", name=hinge.name, type="hinge", axis=_numbers(hinge.axis), range=_numbers(hinge.limits),
                armature=repr(character.armature), frictionloss="1" if servo == "velocity" else "0",
                solimpfriction=SERVO_IMPEDANCE,
            )  # fmt: skip
        ElementTree.SubElement(
            body, "inertial", pos=_numbers(segment.com), mass=repr(segment.mass), diaginertia=_numbers(segment.inertia)
        )
        for number, capsule in enumerate(segment.capsules):
            ElementTree.SubElement(
                body, "geom", name=f"{segment.name}_{number}", type="capsule", size=repr(capsule.radius),
                fromto=_numbers(np.concatenate([capsule.start, capsule.end])), contype="0", conaffinity="1", condim="3",
                friction=f"{character.friction} 0.005 0.0001",
            )  # fmt: skip
    sensors = ElementTree.SubElement(root, "sensor")
    for side in FEET:
        ElementTree.SubElement(
            sensors, "contact", name=f"{side}_foot_contact", subtree1=f"{side}_foot", geom2="ground", num="1",
            data="found force pos", reduce="netforce",
        )  # fmt: skip
    ElementTree.SubElement(sensors, "subtreelinvel", name="com_velocity", body=character.segments[0].name)
    if servo == "pd":
        flag.set("warmstart", "disable")
        actuators = ElementTree.SubElement(root, "actuator")
        for hinge in character.hinges:
            ElementTree.SubElement(
                actuators, "general", name=hinge.name, joint=hinge.name, gaintype="fixed", biastype="affine",
                gainprm="0", biasprm="0 0 0", forcelimited="true", forcerange="-1 1",
            )  # fmt: skip
    return ElementTree.tostring(root, encoding="unicode")


def _numbers(values: object) -> str:
    return " ".join(repr(float(v)) for v in np.asarray(values, float))
