"""The character in its environment as an MJCF model: what MuJoCo compiles."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree

import numpy as np

from mocap2ctrl.character.model import Character, Segment
from mocap2ctrl.geometry import rotations
from mocap2ctrl.simulation.engine import Servo
from mocap2ctrl.simulation.environment import GRAVITY_M_S2, LEVEL, Environment, laden
from mocap2ctrl.simulation.terrain import Surface, surfaces

FEET = ("left", "right")

SERVO_IMPEDANCE = "0.995 0.995 0.001 0.5 2"
"""Softness of the servo rows (the paper's s > 0): a step removes alpha to within 1 %, at half the cost of 0.999."""


SOFT_FRICTION_RATIO = "1000"
"""How much stiffer friction is than a soft ground's normal force: without it a body creeps away on it."""


def build_mjcf(
    character: Character,
    time_step_s: float,
    servo: Servo = "velocity",
    *,
    pairs: bool = True,
    environment: Environment = LEVEL,
) -> str:
    """MJCF text of `character` in `environment`; its softness is written into the compiled model (`mujoco_ground.py`).

    With velocity servos every hinge has a friction-loss row, which the engine turns into the bounded servo of Vondrak Eq. (5)
    and (15). With PD servos every hinge has an actuator whose gains, bounds and damping the engine sets, and nothing is carried
    over from step to step but positions and velocities. With none the model is plain: torques enter from outside only.

    Only the ground touches the body. With `pairs` that is said shape by shape, which spares MuJoCo the search for what is near
    what, and changes no bit; without, in collision classes, so that further objects can be added to the file.
    """
    body, friction = laden(character, environment.loads), environment.friction_of(character)
    ground = {"ground" if n == 0 else f"ground_{n}": surface for n, surface in enumerate(surfaces(environment))}
    root = ElementTree.Element("mujoco", model=character.name)
    _add_settings(root, time_step_s, servo, environment)
    _add_bodies(root, body, servo, pairs, friction, ground)
    _add_sensors(root, body, {"geom2": "ground"} if len(ground) == 1 else {"body2": "world"})
    if pairs:
        _add_pairs(root, body, friction, ground)
    if servo == "pd":
        _add_actuators(root, character)
    return ElementTree.tostring(root, encoding="unicode")


def _add_settings(root: ElementTree.Element, time_step_s: float, servo: Servo, environment: Environment) -> None:
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
    if environment.gravity_m_s2 != GRAVITY_M_S2:
        option.set("gravity", _numbers((0.0, 0.0, -environment.gravity_m_s2)))
    if environment.softness is not None:
        option.set("cone", "elliptic")
        option.set("impratio", SOFT_FRICTION_RATIO)


def _add_bodies(
    root: ElementTree.Element,
    character: Character,
    servo: Servo,
    pairs: bool,
    coefficient: float,
    ground: Mapping[str, Surface],
) -> None:
    """The ground and the tree of segments."""
    world = ElementTree.SubElement(root, "worldbody")
    friction = f"{coefficient} 0.005 0.0001"
    for name, surface in ground.items():
        geom = {"name": name, **_shape_of(surface), "contype": "0" if pairs else "1"}
        ElementTree.SubElement(world, "geom", geom, conaffinity="0", condim="3", friction=friction)
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
        moments = {"diaginertia": _numbers(segment.inertia)}
        if segment.products.any():
            moments = {"fullinertia": _numbers([*segment.inertia, *segment.products])}
        bulk = {"pos": _numbers(segment.com), "mass": repr(segment.mass), **moments}
        ElementTree.SubElement(body, "inertial", bulk)
        for number, capsule in enumerate(segment.capsules):
            place = {"type": "capsule", "fromto": _numbers([*capsule.start, *capsule.end])}
            if np.array_equal(capsule.start, capsule.end):
                place = {"type": "sphere", "pos": _numbers(capsule.start)}
            geom = {"name": _shape(segment, number), **place, "size": repr(capsule.radius), "contype": "0"}
            ElementTree.SubElement(body, "geom", geom, conaffinity="0" if pairs else "1", condim="3", friction=friction)


def _shape_of(surface: Surface) -> dict[str, str]:
    """A surface as attributes of a geom: for the level plane through the origin its type and size alone."""
    shape = {"type": "plane", "size": "0 0 1"}
    if surface.half_size is not None:
        shape = {"type": "box", "size": _numbers(surface.half_size)}
    if surface.half_size is not None or surface.top.any() or surface.normal[2] < 1.0:
        shape |= {"pos": _numbers(surface.centre), "quat": _numbers(surface.orientation)}
    if surface.velocity.any():
        local = rotations.rotate(rotations.conjugate(surface.orientation), surface.velocity)
        shape |= {"surfacevel": _numbers([*local, 0.0, 0.0, 0.0])}
        shape |= {"quat": _numbers(surface.orientation)}
    return shape


def _add_pairs(
    root: ElementTree.Element, character: Character, coefficient: float, ground: Mapping[str, Surface]
) -> None:
    """The ground with each shape, in the order and with the numbers that collision classes would have given."""
    contact = ElementTree.SubElement(root, "contact")
    friction = f"{coefficient} {coefficient} 0.005 0.0001 0.0001"
    for segment in character.segments:
        for number in range(len(segment.capsules)):
            for name in ground:
                ElementTree.SubElement(
                    contact, "pair", geom1=name, geom2=_shape(segment, number), condim="3", friction=friction
                )


def _add_sensors(root: ElementTree.Element, character: Character, touched: Mapping[str, str]) -> None:
    sensors = ElementTree.SubElement(root, "sensor")
    for side in FEET:
        ElementTree.SubElement(
            sensors, "contact", {"name": f"{side}_foot_contact", "subtree1": f"{side}_foot", **touched}, num="1",
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
