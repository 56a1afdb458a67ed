"""Which landmark of the body a marker or keypoint is, by its label.

Plug-in Gait, CGM2, Helen Hayes and OpenSim's sets, the ISB's letters, OpenPose, HALPE and COCO as Pose2Sim writes them, and
OpenCap's augmented markers (`r_knee_study`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mocap2ctrl.character.model import SIDES

# Landmark to labels without the side's letter, most telling first. Centres of joints, then points on the skin.
_LIMB_LABELS: dict[str, str] = {
    "hip": "HJC HIP HIPJOINT",
    "knee": "KJC KNEE KNEEJOINT",
    "ankle": "AJC ANKLE ANKLEJOINT",
    "shoulder": "SJC GHJC SHOULDER SHOULDERJOINT",
    "elbow": "EJC ELBOW ELBOWJOINT",
    "wrist": "WJC WRIST WRISTJOINT",
    "asis": "ASI ASIS IAS",
    "psis": "PSI PSIS IPS",
    "lateral knee": "LFC KNEELAT KNEELATERAL LKNEE KNE FLE LEK KNEESTUDY",
    "medial knee": "MFC KNEEMED KNEEMEDIAL MKNEE KNM MKNE FME MEK",
    "lateral ankle": "LMAL ANKLELAT ANKLELATERAL LANKLE ANK FAL LM MAL ANKLESTUDY",
    "medial ankle": "MMAL ANKLEMED ANKLEMEDIAL MANKLE MED MANK TAM MM ANM",
    "heel": "HEE HEEL CAL CALC FCC",
    "toe": "MT2 MTH2 TOE BIGTOE SMH FM2 D2M TOETIP",
    "medial toe": "MT1 MTH1 FMH FM1 D1M TOEMED BIGTOE",
    "lateral toe": "MT5 MTH5 VMH FM5 D5M TOELAT SMALLTOE 5META",
    "acromion": "SHO ACR ACRO ACROMION ACROMIUM SAE SAJ AC SHOULDERSTUDY",
    "lateral elbow": "ELBLAT LELBOW ELBL ELB HLE LEL",
    "medial elbow": "ELBMED MELBOW ELBM MELB HME MEL",
    "outer wrist": "WRA LWRIST WRISTLAT RSP",
    "inner wrist": "WRB MWRIST WRISTMED USP",
    "hand": "FIN FINGER HAND HM3 IDX",
    "front head": "FHD",
    "back head": "BHD",
    "ear": "EAR TEMPLE",
    "eye": "EYE",
}
_MIDLINE_LABELS: dict[str, str] = {
    "sacrum": "SACR SACRUM VSACRAL SACRAL SAC",
    "c7": "C7",
    "t10": "T10",
    "clavicles": "CLAV IJ SJN JUGULAR",
    "sternum": "STRN STERN STERNUM PX XIPH XIPHOID",
    "neck": "NECK",
    "head top": "HEAD TOPHEAD HEADTOP VERTEX VTX",
    "nose": "NOSE",
}


A_BODY = 6
"""As many landmarks of a subject are a body, and no prop."""


def _by_label(table: dict[str, str]) -> dict[str, list[tuple[str, int]]]:
    """Label to landmarks with the label's rank there."""
    found: dict[str, list[tuple[str, int]]] = {}
    for landmark, labels in table.items():
        for rank, label in enumerate(labels.split()):
            found.setdefault(label, []).append((landmark, rank))
    return found


_LIMB_JOINTS = {
    **{part: f"{part}, medial {part}, lateral {part}" for part in ("hip", "knee", "ankle", "elbow", "toe")},
    "shoulder": "shoulder, acromion",
    "wrist": "wrist, outer wrist, inner wrist",
}
_MIDLINE_JOINTS = {
    "pelvis": "left asis, right asis, left psis, right psis, sacrum",
    "chest": "c7, t10, clavicles, sternum",
    "neck": "neck, c7, clavicles",
    "head": ", ".join(
        [
            "head top",
            "nose",
            *(f"{side} {part}" for part in ("front head", "back head", "ear", "eye") for side in SIDES),
        ]
    ),
}
_ON_THE_SKIN = tuple(f"{letter}{part}STUDY" for letter in "LR" for part in ("KNEE", "ANKLE", "SHOULDER"))
_LIMBS, _MIDLINE = _by_label(_LIMB_LABELS), _by_label(_MIDLINE_LABELS)


def landmarks(labels: Iterable[str]) -> dict[str, str]:
    """Landmark (`left knee`, `left lateral knee`, `c7`) to the label that is the best for it."""
    best: dict[str, tuple[int, str]] = {}
    for label in labels:
        for landmark, rank in _meanings(label):
            if landmark not in best or rank < best[landmark][0]:
                best[landmark] = (rank, label)
    return {landmark: label for landmark, (_, label) in best.items()}


def labels_by_joint(names: dict[str, str]) -> dict[str, str]:
    """Which labels tell each joint of a skeleton of points, from landmarks' labels; for reports."""
    told = {}
    for side, parts in (("", _MIDLINE_JOINTS), *((f"{side} ", _LIMB_JOINTS) for side in SIDES)):
        for joint, marks in parts.items():
            found = [names[side + mark] for mark in marks.split(", ") if side + mark in names]
            told[side + joint] = ", ".join(dict.fromkeys(found))
    for side in SIDES:
        told[f"{side} hip"] = told[f"{side} hip"] or told["pelvis"]
    told["pelvis"] = told["pelvis"] or ", ".join(told[f"{side} hip"] for side in SIDES)
    return {joint: labels for joint, labels in told.items() if labels}


def of_one_subject(labels: Iterable[str]) -> tuple[list[str], list[str]]:
    """The labels of the subject with the most landmarks (`Bob:LASI` is Bob's), and the other subjects who are bodies too."""
    by_subject: dict[str, list[str]] = {}
    for label in labels:
        by_subject.setdefault(label.rpartition(":")[0], []).append(label)
    counts = {subject: len(landmarks(own)) for subject, own in by_subject.items()}
    best = max(counts, key=lambda subject: counts[subject], default="")
    others = [subject for subject, count in counts.items() if subject != best and count >= A_BODY]
    return by_subject.get(best, []), others


def _meanings(label: str) -> list[tuple[str, int]]:
    """The landmarks that a label can be, with the rank of its spelling."""
    name = label.rpartition(":")[2].strip().upper()
    plain = re.sub(r"[^A-Z0-9]", "", name)
    if plain not in _ON_THE_SKIN:  # OpenCap's augmented markers; its knee, ankle and shoulder are no centres
        plain = plain.removesuffix("STUDY")
    if plain in _MIDLINE:
        return _MIDLINE[plain]
    for side in SIDES:
        word, letter = side.upper(), side[0].upper()
        for rest in (
            plain.removeprefix(word) if plain.startswith(word) else None,
            plain[1:] if plain.startswith(letter) else None,
            plain.removesuffix(word) if plain.endswith(word) else None,
            plain[:-1] if plain.endswith(letter) else None,
        ):
            if rest in _LIMBS:
                return [(f"{side} {landmark}", rank) for landmark, rank in _LIMBS[rest]]
    return []
