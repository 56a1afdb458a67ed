"""Which landmark each number of a detector's list of keypoints is. What the body has no place for is None."""

from __future__ import annotations

Layout = tuple[str | None, ...]

_SHORT = {
    "Nose": "nose",
    "Neck": "neck",
    "Head": "head_top",
    "Hip": "pelvis",
    "CHip": "pelvis",
    "MidHip": "pelvis",
    **{
        f"{letter}{part}": f"{side}_{name}"
        for letter, side in (("L", "left"), ("R", "right"))
        for part, name in (
            ("Eye", "eye"),
            ("Ear", "ear"),
            ("Shoulder", "shoulder"),
            ("Elbow", "elbow"),
            ("Wrist", "wrist"),
            ("Hip", "hip"),
            ("Knee", "knee"),
            ("Ankle", "ankle"),
            ("BigToe", "big_toe"),
            ("SmallToe", "small_toe"),
            ("Heel", "heel"),
        )
    },
}
"""Names of OpenPose, which Sports2D and Pose2Sim share."""


def _layout(names: str) -> Layout:
    return tuple(_SHORT[name] if name != "-" else None for name in names.split())


BODY_25 = _layout(
    "Nose Neck RShoulder RElbow RWrist LShoulder LElbow LWrist MidHip RHip RKnee RAnkle LHip LKnee LAnkle REye LEye REar LEar "
    "LBigToe LSmallToe LHeel RBigToe RSmallToe RHeel"
)
COCO_18 = _layout(
    "Nose Neck RShoulder RElbow RWrist LShoulder LElbow LWrist RHip RKnee RAnkle LHip LKnee LAnkle REye LEye REar LEar"
)
COCO_17 = _layout(
    "Nose LEye REye LEar REar LShoulder RShoulder LElbow RElbow LWrist RWrist LHip RHip LKnee RKnee LAnkle RAnkle"
)
HALPE_26 = (
    *COCO_17,
    *_layout("Head Neck Hip LBigToe RBigToe LSmallToe RSmallToe LHeel RHeel"),
)
COCO_133 = (*COCO_17, *_layout("LBigToe LSmallToe LHeel RBigToe RSmallToe RHeel"), *((None,) * 110))
MEDIAPIPE_33 = _layout(
    "Nose - LEye - - REye - LEar REar - - LShoulder RShoulder LElbow RElbow LWrist RWrist - - - - - - LHip RHip LKnee RKnee "
    "LAnkle RAnkle LHeel RHeel LBigToe RBigToe"
)


def _mediapipe_names() -> tuple[str, ...]:
    names = (
        "nose left_eye_inner left_eye left_eye_outer right_eye_inner right_eye right_eye_outer left_ear right_ear mouth_left "
        "mouth_right left_shoulder right_shoulder left_elbow right_elbow left_wrist right_wrist left_pinky right_pinky left_index "
        "right_index left_thumb right_thumb left_hip right_hip left_knee right_knee left_ankle right_ankle left_heel right_heel "
        "left_foot_index right_foot_index"
    )
    return tuple(names.split())


MEDIAPIPE_NAMES = _mediapipe_names()

LAYOUTS: dict[int, tuple[str, Layout]] = {
    17: ("COCO, 17 points", COCO_17),
    18: ("COCO, 18 points", COCO_18),
    25: ("BODY_25", BODY_25),
    26: ("HALPE_26", HALPE_26),
    33: ("MediaPipe, 33 points", MEDIAPIPE_33),
    133: ("COCO, 133 points", COCO_133),
}
"""By the number of points of a person; HALPE_26 is also called body with feet."""


def trc_landmark(name: str) -> str | None:
    """The landmark that a column of a TRC file is; None if it is none."""
    return _SHORT.get(name)
