"""`mocap2ctrl export-graph`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mocap2ctrl.cli.options import add_json, given, note, number, print_json

if TYPE_CHECKING:
    from mocap2ctrl.graph.export import ExportedGraph, GraphOptions

EPILOG = """examples:
  mocap2ctrl export-graph captures/walk -o graph.json
  mocap2ctrl export-graph walk=captures/walk run=humanoid3d_run -o graph.json --symmetric walk run
  mocap2ctrl export-graph walk.bvh getup.bvh -o graph.json --rising getup --transition getup:2.5 walk:0
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.epilog = EPILOG
    parser.add_argument(
        "inputs",
        metavar="[NAME=]INPUT",
        nargs="+",
        type=given,
        help="a capture: its controller is simulated, and shows the skill; or a motion file, a motion.npz, or the name of a clip "
        "in pybullet_data, whose motion is the skill as it is; or graphs, which grow together",
    )
    parser.add_argument("-o", "--output", metavar="FILE.json", required=True, type=given, help="the graph")
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there")
    parser.add_argument(
        "--height", type=number(0.8, 2.4), metavar="M", help="body height for motion files (default: 1.75)"
    )
    parser.add_argument(
        "--gains",
        metavar="SET",
        help="PD gains: locomotion (default) or stunts, stronger waist and legs",
    )
    skills = parser.add_argument_group("skills")
    for flag, text in (
        ("--cyclic", "skills that must be cycles (default: those that have one)"),
        ("--once", "skills that are performed once, though they may have a cycle"),
        ("--symmetric", "cycles to be made of one stride and its mirror image"),
        ("--phase-reset", "cycles whose fragments end when a foot comes down, where one does"),
        ("--rising", "skills that nothing leads to, for after a fall; they are performed once"),
    ):
        skills.add_argument(flag, nargs="+", action="extend", default=[], metavar="NAME", type=given, help=text)
    ways = parser.add_argument_group("transitions")
    ways.add_argument(
        "--transition",
        nargs=2,
        action="append",
        default=[],
        metavar=("A:S", "B:S"),
        type=given,
        help="leave skill A at that second, and blend it into skill B from that second on; several are allowed",
    )
    ways.add_argument(
        "--only-given",
        action="store_true",
        help="no transitions but those of --transition (default: also where skills are near)",
    )
    ways.add_argument(
        "--within",
        type=number(0.0, 10.0),
        metavar="M",
        help="how near skills must be for a transition: root mean square of joints' distances (default: 0.5)",
    )
    ways.add_argument(
        "--blend",
        type=number(0.05, 5.0),
        metavar="S",
        help="length of a transition, more where speeds differ (default: 0.3)",
    )
    parser.add_argument("--no-plots", action="store_true", help="leave FILE.png and FILE.distances.png out")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Makes the graph, and writes it with its pictures."""
    from mocap2ctrl.errors import ConfigError
    from mocap2ctrl.files import refuse_existing, write_bytes
    from mocap2ctrl.fit.capture import check_place, make_folder
    from mocap2ctrl.graph.export import export_graph
    from mocap2ctrl.graph.file import write_graph
    from mocap2ctrl.graph.sources import parse_input
    from mocap2ctrl.report.graph import plot_distances, plot_graph

    path = Path(options.output)
    if path.suffix != ".json":
        raise ConfigError(f"-o {path}: a graph's name ends in .json")
    plots = [] if options.no_plots else [path.with_suffix(".png"), path.with_suffix(".distances.png")]
    check_place(path.parent)
    refuse_existing(path, *plots, overwrite=options.overwrite)
    exported = export_graph([parse_input(text) for text in options.inputs], _graph_options(options))
    make_folder(path.parent)
    write_graph(exported.built.graph, path)
    written = [path]
    if plots:
        write_bytes(plots[0], plot_graph(exported.built.graph))
        written.append(plots[0])
    if plots and exported.near is not None:
        write_bytes(plots[1], plot_distances(exported.near, exported.transitions))
        written.append(plots[1])
    for warning in exported.warnings:
        note(f"note: {warning}")
    _tell(exported, written, as_json=options.json)
    return 0


def _graph_options(options: argparse.Namespace) -> GraphOptions:
    from mocap2ctrl.errors import ConfigError
    from mocap2ctrl.graph.export import GraphOptions
    from mocap2ctrl.simulation.pd_gains import GAIN_SETS

    if options.gains is not None and options.gains not in GAIN_SETS:
        raise ConfigError(f"--gains {options.gains}: there is no such set; choose one of {', '.join(GAIN_SETS)}")
    chosen = {"within_m": options.within, "blend_s": options.blend}
    return GraphOptions(
        height_m=options.height,
        cyclic=options.cyclic,
        once=options.once,
        symmetric=options.symmetric,
        phase_reset=options.phase_reset,
        rising=options.rising,
        transitions=options.transition,
        propose=not options.only_given,
        gains=options.gains,
        **{name: value for name, value in chosen.items() if value is not None},
    )


def _tell(exported: ExportedGraph, written: list[Path], *, as_json: bool) -> None:
    graph = exported.built.graph
    edges = sum(map(len, graph.successors.values()))
    if as_json:
        print_json(
            {
                "graph": str(written[0]),
                "fragments": len(graph.fragments),
                "edges": edges,
                "skills": [skill.name for skill in exported.skills if skill.name not in exported.built.lost],
                "transitions": [f"{way.source}-{way.target}" for way in exported.ways],
                "left_out": [*exported.built.core.dead_ends, *exported.built.core.unreachable],
                "files": [str(file) for file in written],
            }
        )
        return
    for skill in exported.skills:
        kind = "a cycle" if skill.cyclic else "once"
        print(f"{skill.name}: {skill.duration_s:.2f} s, {kind}{', symmetric' if skill.symmetric else ''}")
    for way in exported.ways:
        print(
            f"{way.source} at {way.leave_s:.2f} s to {way.target} at {way.enter_s:.2f} s: {100 * way.distance_m:.0f} cm apart, "
            f"blended over {way.blend_s:.2f} s"
        )
    print(f"{len(graph.fragments)} fragments, {edges} edges")
    for file in written:
        print(f"wrote {file}")
