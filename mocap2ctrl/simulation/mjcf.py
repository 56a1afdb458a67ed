"""The character and its ground as an MJCF model: what MuJoCo compiles."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from mocap2ctrl.character.model import Character, Segment
from mocap2ctrl.simulation.engine import Servo

FEET = ("left", "right")

SERVO_IMPEDANCE = "0.995 0.995 0.001 0.5 2"
"""Softness of the servo rows (the paper's s > 0): a step removes alpha to within 1 %, at half the cost of 0.999."""


def build_mjcf(character: Character, time_step_s: float, servo: Servo = "velocity", *, pairs: bool = True) -> str:
    """MJCF text of `character` on flat ground.

    With velocity servos every hinge has a friction-loss row, which the engine turns into the bounded servo of Vondrak Eq. (5)
    and (15). With PD servos every hinge has an actuator whose gains, bounds and damping the engine sets, and nothing is carried
    over from step to step but positions and velocities. With none the model is plain: torques enter from outside only.

    Only the ground touches the body. With `pairs` that is said shape by shape, which spares MuJoCo the search for what is near
    what, and changes no bit; without, in collision classes, so that further objects can be added to the file.
    """
    root = ElementTree.Element("mujoco", model=character.name)
    _add_settings(root, time_step_s, servo)
    _add_bodies(root, character, servo, pairs)
    _add_sensors(root, character)
    if pairs:
        _add_pairs(root, character)
    if servo == "pd":
        _add_actuators(root, character)
    return ElementTree.tostring(root, encoding="unicode")


def _add_settings(root: ElementTree.Element, time_step_s: float, servo: Servo) -> None:
    ElementTree.SubElement(root, "compiler", angle="radian", autolimits="true")
    option = ElementTree.SubElement(
        root, "option", timestep=repr(time_step_s), integrator="Euler", solver="Newton", cone="pyramidal", iterations="50",
        ls_iterations="50", tolerance="1e-10",
    )  # fmt: skip
    flag = ElementTree.SubElement(
        option, "flag", eulerdamp="disable", island="disable", autoreset="disable", filterparent="enable"
    )
    if servo == "pd":
        flag.set("warmstart", "disable")


def _add_bodies(root: ElementTree.Element, character: Character, servo: Servo, pairs: bool) -> None:
    """The ground and the tree of segments."""
    world = ElementTree.SubElement(root, "worldbody")
    friction = f"{character.friction} 0.005 0.0001"
    ElementTree.SubElement(
        world,
        "geom",
        name="ground",
        type="plane",
        size="0 0 1",
        contype="0" if pairs else "1",
        conaffinity="0",
        condim="3",
        friction=friction,
    )
    bodies: list[ElementTree.Element] = []
    for segment in character.segments:
        parent = bodies[segment.parent] if bodies else world
        body = ElementTree.SubElement(parent, "body", name=segment.name, pos=_numbers(segment.offset))
        if not bodies:
            ElementTree.SubElement(body, "freejoint", name="root")
        bodies.append(body)
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
                body, "geom", name=_shape(segment, number), type="capsule", size=repr(capsule.radius),
                fromto=_numbers(np.concatenate([capsule.start, capsule.end])), contype="0",
                conaffinity="0" if pairs else "1", condim="3", friction=friction,
            )  # fmt: skip


def _add_pairs(root: ElementTree.Element, character: Character) -> None:
    """The ground with each shape, in the order and with the numbers that collision classes would have given."""
    contact = ElementTree.SubElement(root, "contact")
    friction = f"{character.friction} {character.friction} 0.005 0.0001 0.0001"
    for segment in character.segments:
        for number in range(len(segment.capsules)):
            ElementTree.SubElement(
                contact, "pair", geom1="ground", geom2=_shape(segment, number), condim="3", friction=friction
            )


def _add_sensors(root: ElementTree.Element, character: Character) -> None:
    sensors = ElementTree.SubElement(root, "sensor")
    for side in FEET:
        ElementTree.SubElement(
            sensors, "contact", name=f"{side}_foot_contact", subtree1=f"{side}_foot", geom2="ground", num="1",
            data="found force pos", reduce="netforce",
        )  # fmt: skip
    ElementTree.SubElement(sensors, "subtreelinvel", name="com_velocity", body=character.segments[0].name)


def _add_actuators(root: ElementTree.Element, character: Character) -> None:
    """One a hinge; its gains and bounds are written into the compiled model."""
    actuators = ElementTree.SubElement(root, "actuator")
    for hinge in character.hinges:
        ElementTree.SubElement(
            actuators, "general", name=hinge.name, joint=hinge.name, gaintype="fixed", biastype="affine",
            gainprm="0", biasprm="0 0 0", forcelimited="true", forcerange="-1 1",
        )  # fmt: skip


def _shape(segment: Segment, number: int) -> str:
    return f"{segment.name}_{number}"


def _numbers(values: object) -> str:
    return " ".join(repr(float(v)) for v in np.asarray(values, float))
