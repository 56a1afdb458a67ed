"""The file by which a user says which joint is which: TOML, one line a part, written by `inspect` as a starting point."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.motion.names import PARTS
from mocap2ctrl.motion.source import SourceMotion

FILE_NAME = "joint-map.toml"
_KEYS = {part.replace(" ", "_"): part for part in PARTS}

_HEAD = """\
# Which joint of {file} is which part of the body. Correct what is wrong and give this file with --joint-map.
# A part without a line is found as before; "" says that the skeleton has no such joint.
# Needed are hip, knee, ankle, shoulder and elbow on both sides; each joint lies below the one before it.

"""


def read_joint_map(path: Path | str) -> dict[str, str]:
    """The joints' names by part, `left knee` for example.

    Raises:
        MotionFileError: the file cannot be read, is no TOML, or names parts that do not exist; says which.
    """
    try:
        values = tomllib.loads(Path(path).read_text("utf-8-sig"))
    except OSError as error:
        raise MotionFileError(f"{path}: cannot be read as a joint map ({error.strerror or error})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        said = " ".join(str(error).split())
        raise MotionFileError(
            f'{path}: not a joint map ({said}); it holds lines like left_knee = "LeftLeg", as inspect writes them'
        ) from error
    for key, value in values.items():
        if key not in _KEYS:
            raise MotionFileError(f"{path}: unknown part {key!r}; {_near(key, list(_KEYS))}")
        if not isinstance(value, str):
            raise MotionFileError(f'{path}: {key} = {value!r}; a joint\'s name in quotes is needed, "" for none')
    return {_KEYS[key]: value for key, value in values.items()}


def chosen_joints(source: SourceMotion, names: Mapping[str, str], map_path: str) -> dict[str, int | None]:
    """The joints' indices by part; None for parts that the skeleton has not.

    Raises:
        MotionFileError: a joint is not in the skeleton, or given for two parts; says which, and what is near.
    """
    chosen: dict[str, int | None] = {}
    for part, name in names.items():
        key = part.replace(" ", "_")
        joint = None if name == "" else _find(source, name)
        if name != "" and joint is None:
            raise MotionFileError(
                f"{map_path}: {key} = {name!r}, but the motion has no such joint; {_near(name, list(source.joint_names))}"
            )
        twin = None if joint is None else next((other for other, taken in chosen.items() if taken == joint), None)
        if twin is not None and not {part, twin} <= {"pelvis", "chest", "neck", "head"}:
            both = f"{twin.replace(' ', '_')} and for {key}"
            raise MotionFileError(f"{map_path}: {name!r} is given for {both}; one joint is one part")
        chosen[part] = joint
    return chosen


def joint_map_text(source: SourceMotion, found: Mapping[str, str], file: str) -> str:
    """A joint map of what was found, to be corrected; the skeleton's tree stands below it as a comment."""
    lines = [_HEAD.format(file=Path(file).name)]
    for key, part in _KEYS.items():
        if part in ("left hip", "right hip"):
            lines.append("\n")
        lines.append(f"{key} = {_quoted(found[part])}\n" if part in found else f'# {key} = ""\n')
    lines.append(f"\n# The joints of {Path(file).name}:\n")
    for joint, name in enumerate(source.joint_names):
        if not source.is_tip[joint]:
            lines.append(f"#   {'  ' * (len(source.ancestors(joint)) - 1)}{_one_line(name)}\n")
    return "".join(lines)


def _find(source: SourceMotion, name: str) -> int | None:
    """A joint by its name, or, if only one has it, by its name in other letters or behind a prefix."""
    if name in source.joint_names:
        return source.joint_names.index(name)
    folded = [_folded(other) for other in source.joint_names]
    return folded.index(_folded(name)) if folded.count(_folded(name)) == 1 else None


def _folded(name: str) -> str:
    return name.rpartition(":")[2].strip().casefold() if not name.endswith(":tip") else name.casefold()


def _near(name: str, known: Sequence[str]) -> str:
    """The known names that look like it, or the first of them."""
    folded = {other.casefold(): other for other in known}
    near = [repr(folded[other]) for other in difflib.get_close_matches(name.casefold(), folded, 3, 0.5)]
    if near:
        return f"near are {', '.join(near)}"
    return f"there are {', '.join(map(repr, known[:12]))}{' …' if len(known) > 12 else ''}"


def _quoted(name: str) -> str:
    import tomli_w

    return tomli_w.dumps({"x": name}).removeprefix("x = ").strip()


def _one_line(name: str) -> str:
    """A name that cannot end its comment: control characters are not allowed in TOML."""
    return "".join(character if character.isprintable() else "?" for character in name)
