"""`mocap2ctrl COMMAND …`: finds the command, and turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import importlib
import io
import json
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

from mocap2ctrl import __version__
from mocap2ctrl.errors import INTERRUPTIONS, FitError, Mocap2CtrlError, is_interruption

COMMANDS = {
    "fit": "fit a physics controller to a video or a motion; writes a capture folder",
    "inspect": "before a fit: what is understood of an input, as a page and a picture",
    "learn": "learn feedback for a control graph, or for a cyclic motion: Guided SAMCON",
    "evaluate": "joint error, silhouette overlap and falls of a capture's controller",
    "simulate": "replay a capture's controller: longer, pushed, weaker, or in another environment; or walk a control graph",
    "push-test": "the largest push that a capture's controller, or a learned graph, survives from front, rear, left and right",
    "convert": "write a motion file, or what a capture performs, as BVH, GLB, NPZ, CSV or MJCF",
    "export-mjcf": "write the character and its simulated motion as a plain MuJoCo model",
    "export-graph": "cut captures' and files' motions into a control graph, with ways between them",
    "export-policy": "write a learned graph as plain arrays with their meaning, and its character for MuJoCo",
    "silhouettes": "find the person in each frame of a video; writes masks and a picture",
    "calibrate": "solve for a video's camera from joints clicked in a frame, or from a file of points",
    "train-prior": "learn a pose prior from motion files",
}
DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns 0 done, 1 the job failed, 2 bad input."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a path may hold what the terminal cannot write
    try:
        try:
            code = _run(given)
        finally:  # here, and not when the interpreter ends, where nobody could answer for it
            if sys.stdout is not None:  # None where the shell has closed it
                sys.stdout.flush()
    except INTERRUPTIONS as error:  # while the command was being loaded
        if not is_interruption(error):
            raise
        print("mocap2ctrl: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return FAILED
    except OSError as error:
        _discard_output()
        print(f"mocap2ctrl: the output cannot be written ({error.strerror or error})", file=sys.stderr)
        return FAILED
    return code


def _end(number: int, frame: FrameType | None) -> None:
    """SIGTERM, which job schedulers send, keeps what Ctrl-C keeps, also where Ctrl-C itself is ignored."""
    hear = signal.getsignal(signal.SIGINT)
    if not callable(hear):
        raise KeyboardInterrupt
    hear(number, frame)


def _discard_output() -> None:
    """Leads stdout nowhere, so that the interpreter's last flush does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(given: Sequence[str]) -> int:
    parser = _parser()
    command = next((a for a in given if not a.startswith("-")), None)
    module = None
    if command in COMMANDS:
        module = importlib.import_module(f"mocap2ctrl.cli.{command.replace('-', '_')}")
        module.add_arguments(parser.commands[command])
    try:
        options = parser.parse_args(_axes_joined(given))
    except _UsageError as error:  # what no command knows is told by the outermost parser
        named = error.command if module is None else f"mocap2ctrl {command}"
        return _fail(named, f"{error}; see {named} --help", BAD_INPUT, json_too="--json" in given)
    if module is None:
        parser.print_help()
        return BAD_INPUT
    options.command_line = shlex.join([parser.prog, *given])

    def fail(message: str, code: int) -> int:
        return _fail(f"mocap2ctrl {options.command}", message, code, json_too=options.json)

    try:
        return int(module.run(options))
    except (Mocap2CtrlError, UnicodeEncodeError) as error:
        name = (
            f"{error.object}: has bytes that are not UTF-8; rename it" if isinstance(error, UnicodeEncodeError) else ""
        )
        return fail(name or str(error), FAILED if isinstance(error, FitError) else BAD_INPUT)
    except INTERRUPTIONS as error:
        if not is_interruption(error):
            raise
        kept = getattr(module, "kept", None)
        return fail(f"interrupted; {kept(options)}" if kept else "interrupted", INTERRUPTED)
    except BrokenPipeError:
        raise
    except OSError as error:
        what = f"{error.filename}: " if error.filename else ""
        return fail(f"{what}{error.strerror or error}", FAILED)


def _axes_joined(given: Sequence[str]) -> list[str]:
    """A negative axis after `--up`, or point after `--goal`, is its value, which argparse takes for an option."""
    joined: list[str] = []
    for word in given:
        axis = word in ("-x", "-y", "-z") and joined[-1:] == ["--up"]
        if axis or (re.match(r"-[\d.]", word) and joined[-1:] == ["--goal"]):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _fail(command: str, message: str, code: int, *, json_too: bool) -> int:
    line = " ".join(message.split())
    print(f"{command}: {line}", file=sys.stderr)
    if json_too:
        print(json.dumps({"error": line}))
    return code


class _UsageError(Exception):
    """Arguments that do not parse; `command` is whose help says more."""

    def __init__(self, command: str, message: str) -> None:
        super().__init__(message)
        self.command = command


class _Parser(argparse.ArgumentParser):
    """An argument parser that raises its errors."""

    commands: dict[str, argparse.ArgumentParser]

    def error(self, message: str) -> None:  # type: ignore[override]
        raise _UsageError(self.prog, message)


def _parser() -> _Parser:
    parser = _Parser(
        prog="mocap2ctrl",
        description="A motion goes in; a physics controller that performs it comes out.",
        epilog="example: mocap2ctrl fit walk.bvh -o captures/walk",
    )
    parser.add_argument("--version", action="version", version=f"mocap2ctrl {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    parser.commands = {
        name: subparsers.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for name, text in COMMANDS.items()
    }
    return parser


if __name__ == "__main__":
    sys.exit(main())
