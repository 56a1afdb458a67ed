"""A software renderer of the character: every capsule is intersected with the pixels' rays exactly and shaded.

Capsules are drawn from far to near. Where they meet they are resolved by depth; their outlines are blended by the share
of the pixel that they cover, which gives smooth edges without supersampling.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np

from mocap2ctrl.character import Character
from mocap2ctrl.character.kinematics import segment_frames
from mocap2ctrl.character.shape import body_shape, capsule_ends
from mocap2ctrl.geometry import rotations
from mocap2ctrl.report.camera import Pinhole, Viewpoint, VirtualCamera, pixel_windows
from mocap2ctrl.report.ground import Float, Image, add_shadow, background
from mocap2ctrl.simulation.environment import Load, laden
from mocap2ctrl.types import Array, Pose

LEFT_COLOUR = (64, 132, 196)
RIGHT_COLOUR = (230, 126, 58)
TRUNK_COLOUR = (176, 180, 192)
HEAD_COLOUR = (214, 208, 202)
VISOR_COLOUR = (58, 64, 78)
LOAD_COLOUR = (92, 98, 112)
LOAD = "load"
SKY_LIGHT = np.array([0.94, 0.98, 1.06], np.float32)

KEY_LIGHT = np.array([-0.45, -0.72, -0.55]) / np.linalg.norm([-0.45, -0.72, -0.55])
"""Direction to the lamp in the camera's frame (right, down, forward): above, to the left, behind the camera."""

NEAREST_M = 0.4
"""A body of which a part is nearer to the camera than this is not drawn."""

SHORTEST_M = 1e-3
"""Length that a capsule is drawn with if it has none."""

CREASE_M = 0.018
"""Where two capsules meet, their shading is mixed over this depth, so that the body looks grown, not stacked."""

VISOR_HEIGHT = 0.12
"""How far above the middle of the head the visor sits, as a cosine."""


@dataclass(frozen=True, eq=False)
class Paint:
    """How the capsules of a body are coloured.

    Attributes:
        colours: (C, 3) RGB.
        visor: index of the capsule that shows where the head looks, or -1.
    """

    colours: Float
    visor: int


@lru_cache(maxsize=8)
def paint(character: Character, loads: tuple[Load, ...] = ()) -> Paint:
    """Left limbs blue, right orange, the trunk grey, loads dark."""
    owner = body_shape(laden(character, loads)).owner
    names = [character.segments[i].name for i in owner]
    for index, (segment, both) in enumerate(zip(character.segments, laden(character, loads).segments, strict=True)):
        first = int(np.searchsorted(owner, index))
        for number in range(len(segment.capsules), len(both.capsules)):
            names[first + number] = LOAD
    visor = max((i for i, name in enumerate(names) if name == "head"), default=-1)
    return Paint(np.array([_colour(name) for name in names], np.float32), visor)


def _colour(segment_name: str) -> tuple[int, int, int]:
    if segment_name == LOAD:
        return LOAD_COLOUR
    if segment_name.startswith("left_"):
        return LEFT_COLOUR
    if segment_name.startswith("right_"):
        return RIGHT_COLOUR
    return HEAD_COLOUR if segment_name == "head" else TRUNK_COLOUR


def draw(image: Image, camera: Viewpoint, character: Character, pose: Pose, *, fade: float = 0.0) -> None:
    """Draw a posed character and its shadow into `image`, RGB (H, W, 3), in place.

    Args:
        image: usually `background(camera)`.
        camera: the image's camera.
        character: the body.
        pose: its configuration.
        fade: 0 draws in full colour, 1 in pale grey, for a body that only holds its last pose.
    """
    frames = segment_frames(character, pose.root_position, pose.root_orientation, pose.angles)
    draw_frames(image, camera, character, *frames, fade=fade)


def draw_frames(
    image: Image,
    camera: Viewpoint,
    character: Character,
    positions: Array,
    orientations: Array,
    *,
    fade: float = 0.0,
    girth: float = 1.0,
    shadow: float = 1.0,
    loads: tuple[Load, ...] = (),
    ground_m: float = 0.0,
) -> None:
    """As `draw`, for segments whose frames are known already.

    Args:
        image, camera, character, fade: as in `draw`.
        positions, orientations: (S, 3) and (S, 4) of the segments.
        girth: of the body's shape (`BodyShape.radii_at`).
        shadow: how dark the shadow is, 0 to 1.
        loads: what the body carries.
        ground_m: height of the ground that the shadow falls on, metres.
    """
    shape = body_shape(laden(character, loads))
    radii = shape.radii_at(girth)
    colouring = paint(character, loads)
    ends = capsule_ends(shape, positions, orientations)
    ends_camera = camera.to_camera(ends)
    if np.any(ends_camera[..., 2] < NEAREST_M):
        return
    if shadow > 0.0:
        add_shadow(image, camera, ends, radii, strength=shadow * (1.0 - 0.6 * fade), ground_m=ground_m)
    windows = pixel_windows(camera, ends_camera, radii)
    (left, top), (right, bottom) = windows[:, :2].min(axis=0), windows[:, 2:].max(axis=0)
    if right <= left or bottom <= top:
        return
    whole = image[top:bottom, left:right]
    canvas = np.stack(cv2.split(whole)).astype(np.float32)
    depth = np.full(whole.shape[:2], np.inf, np.float32)
    colours = _faded(colouring.colours, fade) * SKY_LIGHT
    gaze = camera.axes @ _gaze_world(character, orientations)
    for index in np.argsort(-ends_camera[..., 2].mean(axis=1)):
        x0, y0, x1, y1 = windows[index]
        if x1 <= x0 or y1 <= y0:
            continue
        part = (slice(y0 - top, y1 - top), slice(x0 - left, x1 - left))
        view = _View(camera, (slice(y0, y1), slice(x0, x1)))
        surface = _intersect(view.rays, ends_camera[index], float(radii[index]))
        visor = gaze if index == colouring.visor else None
        _blend(canvas[:, *part], depth[part], view, surface, colour=colours[index], gaze=visor)
    np.copyto(whole, cv2.merge([plane.astype(np.uint8) for plane in np.clip(canvas, 0.0, 255.0)]))


def render(camera: VirtualCamera, character: Character, pose: Pose) -> Image:
    """Draw a picture of one pose on the ground, RGB (H, W, 3)."""
    image = background(camera)
    draw(image, camera, character, pose)
    return image


@lru_cache(maxsize=8)
def _ray_planes(size: tuple[int, int], pinhole: Pinhole) -> Float:
    """(3, H, W) unit directions of the pixels' rays in the camera's frame."""
    width, height = size
    fx, fy, cx, cy = pinhole
    u, v = np.meshgrid(np.arange(width) - cx, np.arange(height) - cy)
    rays = np.stack([u / fx, v / fy, np.ones_like(u)])
    return np.ascontiguousarray(rays / np.linalg.norm(rays, axis=0), np.float32)


@lru_cache(maxsize=8)
def _light_along_rays(size: tuple[int, int], pinhole: Pinhole, up: tuple[float, float, float]) -> Float:
    """(2, H, W) components of the rays along the key light and along the world's `up` in the camera's frame."""
    return np.stack([_dot(_ray_planes(size, pinhole), direction) for direction in (KEY_LIGHT, np.array(up))])


@dataclass(frozen=True, eq=False)
class _View:
    """A window of a camera's image."""

    camera: Viewpoint
    part: tuple[slice, slice]

    @property
    def rays(self) -> Float:
        """(3, h, w) unit directions."""
        return _ray_planes(self.camera.size, self.camera.pinhole)[:, *self.part]

    @property
    def light(self) -> Float:
        """(2, h, w) components of the rays along the key light and along up."""
        right, down, forward = (float(v) for v in self.camera.axes[:, 2])
        return _light_along_rays(self.camera.size, self.camera.pinhole, (right, down, forward))[:, *self.part]


@dataclass(frozen=True, eq=False)
class _Surface:
    """Where a window's rays meet a capsule.

    Attributes:
        start, axis: (3,) the capsule's start, and from there to its end; camera frame, metres.
        radius: metres.
        distance: (h, w) along the ray to the surface, for a miss to the closest approach, metres.
        along: (h, w) 0 to 1 from start to end, of the axis point nearest the hit.
        inside: (h, w) radius^2 minus the squared distance of ray and axis: positive where the ray hits, metres^2.
    """

    start: Array
    axis: Array
    radius: float
    distance: Float
    along: Float
    inside: Float

    def normal_along(self, direction: Array, ray_direction: Float) -> Float:
        """Component along `direction` (3,) of the normal, (hit - axis point) / radius, given the rays' own."""
        component = self.distance * ray_direction
        component -= np.float32(self.start @ direction)
        component -= self.along * np.float32(self.axis @ direction)
        component *= np.float32(1.0 / self.radius)
        return component


def _intersect(rays: Float, ends: Array, radius: float) -> _Surface:
    """First hits of rays (3, h, w) from the origin with a capsule: on its side, else on the sphere at an end."""
    start, axis = ends[0], ends[1] - ends[0]
    if not axis.any():  # a ball
        axis = np.array([0.0, 0.0, SHORTEST_M])
    length2, start_axis = max(float(axis @ axis), 1e-8), float(start @ axis)
    ray_start, ray_axis = _dot(rays, start), _dot(rays, axis)
    across = np.maximum(np.float32(length2) - ray_axis * ray_axis, np.float32(1e-7))
    half_b = ray_axis * np.float32(start_axis) - np.float32(length2) * ray_start
    constant = np.float32(length2 * float(start @ start) - start_axis**2 - radius**2 * length2)
    side = half_b * half_b - across * constant
    side_distance = (-half_b - np.sqrt(np.maximum(side, np.float32(0.0)))) / across
    along = (side_distance * ray_axis - np.float32(start_axis)) * np.float32(1.0 / length2)
    clipped = np.minimum(np.maximum(along, np.float32(0.0)), np.float32(1.0))
    past = along != clipped
    ray_centre = ray_start + clipped * ray_axis
    centre2 = clipped * (np.float32(2.0 * start_axis) + clipped * np.float32(length2)) + np.float32(start @ start)
    sphere = ray_centre * ray_centre - centre2 + np.float32(radius**2)
    distance = np.where(past, ray_centre - np.sqrt(np.maximum(sphere, np.float32(0.0))), side_distance)
    inside = np.where(past, sphere, side / (across * np.float32(length2)))
    return _Surface(start, axis, radius, distance, clipped, inside)


def _blend(canvas: Float, depth: Float, view: _View, surface: _Surface, *, colour: Float, gaze: Array | None) -> None:
    """Lay a shaded capsule over `canvas` (3, h, w) where it is in front of `depth` (h, w); both change in place."""
    # inside / (2 radius) is about the distance to the outline, in metres; focal / distance makes it pixels.
    focal = 0.5 * sum(view.camera.pinhole[:2])
    coverage = surface.inside * np.float32(focal / (2.0 * surface.radius)) / surface.distance
    coverage += np.float32(0.5)
    np.minimum(np.maximum(coverage, np.float32(0.0), out=coverage), np.float32(1.0), out=coverage)
    in_front = (depth - surface.distance) * np.float32(0.5 / CREASE_M)
    in_front += np.float32(0.5)
    coverage *= np.minimum(np.maximum(in_front, np.float32(0.0), out=in_front), np.float32(1.0), out=in_front)
    np.minimum(depth, surface.distance, out=depth, where=surface.inside > 0.0)
    brightness, highlight = _shading(view, surface)
    visor = None if gaze is None else _visor(view, surface, gaze)
    for plane, channel, dark in zip(canvas, colour, VISOR_COLOUR, strict=True):
        shade = brightness * (channel if visor is None else channel + visor * (np.float32(dark) - channel))
        shade += highlight
        shade -= plane
        shade *= coverage
        np.add(plane, shade, out=plane)


def _shading(view: _View, surface: _Surface) -> tuple[Float, Float]:
    """Brightness (h, w) from a soft key light and the sky, and a faint highlight (h, w) in grey levels."""
    light = view.light
    key = surface.normal_along(KEY_LIGHT, light[0])
    sky = surface.normal_along(view.camera.axes[:, 2], light[1])
    diffuse = np.maximum(np.float32(0.38) + np.float32(0.62) * key, np.float32(0.0))
    brightness = np.float32(0.46) + np.float32(0.58) * diffuse * diffuse + np.float32(0.13) * sky
    highlight = np.maximum(key, np.float32(0.0))
    for _ in range(4):
        highlight *= highlight
    highlight *= np.float32(30.0)
    return brightness, highlight


def _visor(view: _View, surface: _Surface, gaze: Array) -> Float:
    """(h, w) share of the dark band that shows where the head looks; `gaze` (3,) in the camera's frame."""
    length = max(float(np.linalg.norm(surface.axis)), 1e-6)
    unit = surface.axis / length
    forward = surface.normal_along(gaze, _dot(view.rays, gaze))
    lift = surface.normal_along(unit, _dot(view.rays, unit))
    lift += (surface.along - np.float32(0.5)) * np.float32(length / surface.radius)
    band = np.clip((np.float32(0.24) - np.abs(lift - np.float32(VISOR_HEIGHT))) * np.float32(14.0), 0.0, 1.0)
    return np.asarray(band * np.clip((forward - np.float32(0.4)) * np.float32(9.0), 0.0, 1.0))


def _dot(rays: Float, vector: Array) -> Float:
    x, y, z = (np.float32(v) for v in vector)
    total = rays[0] * x
    total += rays[1] * y
    total += rays[2] * z
    return np.asarray(total)


def _gaze_world(character: Character, orientations: Array) -> Array:
    names = character.segment_names
    return rotations.rotate(orientations[names.index("head") if "head" in names else 0], (1.0, 0.0, 0.0))


def _faded(colours: Float, fade: float) -> Float:
    grey = 0.45 * colours.mean(axis=1, keepdims=True) + 105.0
    return np.asarray((1.0 - fade) * colours + fade * grey, np.float32)
