"""The character as a URDF model: what Bullet loads.

Bullet's joints have one axis, so a joint of several hinges is a chain of links without mass. The articulated inertia about a
hinge must not vanish where two axes fall together, so those links have a small inertia, which is taken from their segment's.
"""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from mocap2ctrl.character.model import Character, Segment
from mocap2ctrl.types import Array

MIN_INERTIA = 0.005
"""kg m^2: what a segment's inertia is raised to about each axis. Bullet has no armature, and hands and toes have nearly none."""

LINK_INERTIA = 0.25
"""Inertia of a link between two hinges, as a fraction of its segment's smallest."""


def build_urdf(character: Character) -> str:
    """URDF text of `character`; its links are numbered by hinge, the root is the base.

    A capsule meets flat ground where the spheres at its ends do; spheres are what stands here, since Bullet remembers the
    contacts of other shapes from step to step.
    """
    robot = ElementTree.Element("robot", name=character.name)
    for segment in character.segments:
        for name, inertia in _links(segment):
            _add_link(robot, name, segment, inertia)
        if segment.parent >= 0:
            _add_joints(robot, segment, character.segments[segment.parent].name)
    ElementTree.indent(robot)  # Bullet cuts lines after 8,191 characters, in the middle of a number if need be
    return ElementTree.tostring(robot, encoding="unicode")


def _links(segment: Segment) -> list[tuple[str, Array]]:
    """Names and inertias (3,) of a segment's links from the parent on; the last one is the segment itself."""
    between = max(len(segment.hinges) - 1, 0)
    inertia = np.maximum(segment.inertia, MIN_INERTIA)
    small = np.full(3, LINK_INERTIA * np.min(inertia))
    names = [f"{segment.name}_{number}" for number in range(between)]
    return [*((name, small) for name in names), (segment.name, inertia - between * small)]


def _add_link(robot: ElementTree.Element, name: str, segment: Segment, inertia: Array) -> None:
    link = ElementTree.SubElement(robot, "link", name=name)
    itself = name == segment.name
    inertial = ElementTree.SubElement(link, "inertial")
    ElementTree.SubElement(inertial, "origin", xyz=_numbers(segment.com if itself else np.zeros(3)))
    ElementTree.SubElement(inertial, "mass", value=repr(float(segment.mass)) if itself else "0")
    moments = {f"i{a}{a}": repr(float(i)) for a, i in zip("xyz", inertia, strict=True)}
    products = segment.products if itself else np.zeros(3)
    moments |= {f"i{a}": f"{p:.17g}" for a, p in zip(("xy", "xz", "yz"), products.tolist(), strict=True)}
    ElementTree.SubElement(inertial, "inertia", moments)
    for capsule in segment.capsules if itself else ():
        for end in (capsule.start, capsule.end):
            collision = ElementTree.SubElement(link, "collision")
            ElementTree.SubElement(collision, "origin", xyz=_numbers(end))
            geometry = ElementTree.SubElement(collision, "geometry")
            ElementTree.SubElement(geometry, "sphere", radius=repr(float(capsule.radius)))


def _add_joints(robot: ElementTree.Element, segment: Segment, parent: str) -> None:
    offset = segment.offset
    for hinge, (child, _) in zip(segment.hinges, _links(segment), strict=True):
        joint = ElementTree.SubElement(robot, "joint", name=hinge.name, type="revolute")
        ElementTree.SubElement(joint, "parent", link=parent)
        ElementTree.SubElement(joint, "child", link=child)
        ElementTree.SubElement(joint, "origin", xyz=_numbers(offset))
        ElementTree.SubElement(joint, "axis", xyz=_numbers(hinge.axis))
        lower, upper = map(repr, hinge.limits)
        ElementTree.SubElement(joint, "limit", lower=lower, upper=upper, effort="0", velocity="0")
        parent, offset = child, np.zeros(3)


def _numbers(values: Array) -> str:
    return " ".join(repr(float(v)) for v in values)
