"""What a user and a capture are told of a camera that was estimated."""

from __future__ import annotations

import math
from typing import Any

from mocap2ctrl.video.calibration.estimate import USUAL_HEIGHT_M, EstimatedCamera
from mocap2ctrl.video.calibration.ground_view import GroundView

ADVICE = "give one with --camera FILE.toml[:NAME], or make one with `mocap2ctrl calibrate`"


def in_words(view: GroundView, spread: GroundView, size: tuple[int, int]) -> str:
    """Focal length, height and tilt with their standard deviations; the roll, too, if there is one."""
    focal, tilt, roll = view.focal * max(size), math.degrees(view.tilt), math.degrees(view.roll)
    rolled = f", rolled {roll:.1f} ± {math.degrees(spread.roll):.1f}°" if abs(view.roll) > 2.0 * spread.roll else ""
    return (
        f"focal length {focal:.0f} ± {focal * spread.focal:.0f} px (field of view {view.field_of_view_deg(size):.0f}°), "
        f"{view.height_m:.2f} ± {spread.height_m:.2f} m above the ground, "
        f"tilted {abs(tilt):.1f} ± {math.degrees(spread.tilt):.1f}° {'down' if tilt >= 0 else 'up'}{rolled}"
    )


def sentence(found: EstimatedCamera, height_m: float | None, size: tuple[int, int]) -> str:
    """One line: the camera of pictures of `size` with its standard deviations, and what they rest on."""
    how = "assumed" if found.assumed else "estimated from heads and feet"
    whose = f"a person of {USUAL_HEIGHT_M:g} m, --height says another" if height_m is None else f"{height_m:g} m tall"
    return (
        f"camera: {how}: {in_words(found.view, found.spread, size)}; "
        f"the person is {found.distance_m:.1f} ± {found.distance_spread_m:.1f} m away ({whose})"
    )


def warnings(found: EstimatedCamera) -> tuple[str, ...]:
    """What makes such a camera doubtful."""
    if not found.assumed:
        return ()
    return (
        "nobody stands upright in this input, so the camera is what is usual rather than what was seen, and the size of the "
        f"motion is a guess; {ADVICE}",
    )


def provenance(found: EstimatedCamera) -> dict[str, Any]:
    """The same for a capture, plain JSON values: each number with its standard deviation."""
    view, spread = found.view, found.spread
    pairs = {
        "focal_of_longer_side": (view.focal, view.focal * spread.focal),
        "height_m": (view.height_m, spread.height_m),
        "tilt_deg": (math.degrees(view.tilt), math.degrees(spread.tilt)),
        "roll_deg": (math.degrees(view.roll), math.degrees(spread.roll)),
        "distance_m": (found.distance_m, found.distance_spread_m),
    }
    numbers = {name: [round(v, 4) for v in pair] for name, pair in pairs.items()}
    return {"how": "assumed" if found.assumed else "estimated", "windows": found.windows, **numbers}
