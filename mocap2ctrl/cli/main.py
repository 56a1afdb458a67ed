"""`mocap2ctrl COMMAND …`: finds the command, and turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shlex
import sys
from collections.abc import Sequence

from mocap2ctrl import __version__
from mocap2ctrl.errors import FitError, Mocap2CtrlError

COMMANDS = {
    "fit": "fit a physics controller to a motion; writes a capture folder",
    "evaluate": "joint error and falls of a capture's controller",
    "simulate": "replay a capture's controller: longer, pushed, or weaker",
    "train-prior": "learn a pose prior from motion files",
}
DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns 0 done, 1 the job failed, 2 bad input."""
    parser = _parser()
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = next((a for a in given if not a.startswith("-")), None)
    module = None
    if command in COMMANDS:
        module = importlib.import_module(f"mocap2ctrl.cli.{command.replace('-', '_')}")
        module.add_arguments(parser.commands[command])
    options = parser.parse_args(given)
    if module is None:
        parser.print_help()
        return BAD_INPUT
    options.command_line = shlex.join([parser.prog, *given])
    try:
        return int(module.run(options))
    except Mocap2CtrlError as error:
        return _fail(options, str(error), FAILED if isinstance(error, FitError) else BAD_INPUT)
    except KeyboardInterrupt:
        return _fail(options, "interrupted; what was begun is kept, go on with --resume", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        what = f"{error.filename}: " if error.filename else ""
        return _fail(options, f"{what}{error.strerror or error}", FAILED)


def _fail(options: argparse.Namespace, message: str, code: int) -> int:
    line = " ".join(message.split())
    print(f"mocap2ctrl {options.command}: {line}", file=sys.stderr)
    if getattr(options, "json", False):
        print(json.dumps({"error": line}))
    return code


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line with exit code 2."""

    commands: dict[str, argparse.ArgumentParser]

    def error(self, message: str) -> None:  # type: ignore[override]
        print(f"{self.prog}: {message}; see {self.prog} --help", file=sys.stderr)
        raise SystemExit(BAD_INPUT)


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
