"""`mocap2ctrl export-policy`."""

from __future__ import annotations

import argparse
from pathlib import Path

from mocap2ctrl.cli.options import add_json, given, note, print_json

EPILOG = """example:
  mocap2ctrl export-policy learned.json -o policy
  python docs/play_policy.py policy --view       runs it in plain MuJoCo
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.epilog = EPILOG
    parser.add_argument("graph", metavar="GRAPH", type=given, help="a graph.json that mocap2ctrl learn has written")
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        required=True,
        type=given,
        help="where policy.npz, policy.json and character.xml go",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Reads the graph and writes the three files."""
    from mocap2ctrl.files import refuse_existing
    from mocap2ctrl.fit.capture import check_place
    from mocap2ctrl.graph.body import character_of
    from mocap2ctrl.graph.file import read_graph
    from mocap2ctrl.samcon.policy_export import FILES, export_policy

    folder = Path(options.output)
    check_place(folder)
    refuse_existing(*(folder / name for name in FILES), overwrite=options.overwrite)
    graph = read_graph(Path(options.graph))
    files = export_policy(graph, character_of(graph, options.graph), folder)
    learned = sum(fragment.policy is not None for fragment in graph.fragments.values())
    if learned < len(graph.fragments):
        note(
            f"note: {len(graph.fragments) - learned} of {len(graph.fragments)} fragments have no feedback; learn the graph first"
        )
    if options.json:
        print_json({"fragments": len(graph.fragments), "learned": learned, "files": [str(file) for file in files]})
        return 0
    for file in files:
        print(f"wrote {file}")
    return 0
