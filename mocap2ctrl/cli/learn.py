"""`mocap2ctrl learn GRAPH|MOTION -o learned.json`: linear feedback for every fragment of a control graph, by Guided SAMCON."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mocap2ctrl.cli.input_options import add_correction_arguments, add_time_arguments
from mocap2ctrl.cli.learning_display import LearningDisplay
from mocap2ctrl.cli.options import add_json, given, note, number, print_json, whole
from mocap2ctrl.errors import ConfigError, MotionFileError

if TYPE_CHECKING:
    from mocap2ctrl.graph.fragments import ControlGraph
    from mocap2ctrl.samcon.learn import LearnConfig

EPILOG = """examples:
  mocap2ctrl learn graph.json -o learned.json               feedback for a graph that export-graph has written
  mocap2ctrl learn humanoid3d_walk -o walk.json             a cyclic motion file or clip: one skill, without a fit before
  mocap2ctrl learn spin.bvh --gains stunts -o spin.json     stiffer waist and legs, for flips and kicks
  mocap2ctrl learn walk.json -o better.json --relearn       go on with what is learned
  mocap2ctrl learn walk.json -o hard.json --relearn --iterations 0 --hardening 8 --push-for 0.4 --push-sides 714 1000 966
                                                                bear harder pushes, as a push-test has them
  mocap2ctrl learn walk.json -o tall.json --character tall.toml   the same for another body
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.epilog = EPILOG
    parser.add_argument(
        "input",
        metavar="INPUT",
        type=given,
        help="a graph (.json), or a motion file or clip in pybullet_data that repeats itself: its best cycle is learned",
    )
    parser.add_argument("-o", "--output", metavar="FILE.json", type=given, required=True, help="the learned graph")
    parser.add_argument(
        "--iterations",
        type=whole(0, 1000),
        metavar="N",
        help="of guided learning, 1 to 1000, or 0 with --relearn (default: 10)",
    )
    parser.add_argument(
        "--hardening",
        type=whole(0, 1000),
        metavar="N",
        help="iterations of hardening against pushes after it, 0 to 1000 (default: 5)",
    )
    parser.add_argument(
        "--push-for",
        type=number(0.05, 1.0),
        metavar="S",
        help="how long pushes of hardening, and of the test after each iteration, last, 0.05 to 1 (default: 0.2)",
    )
    parser.add_argument(
        "--push-sides",
        type=number(0.01, 10_000.0),
        nargs=3,
        metavar=("FRONT", "REAR", "SIDES"),
        help="how hard pushes of hardening from each side are, relative to one another (default: all alike)",
    )
    parser.add_argument(
        "--samples",
        type=whole(10, 100_000),
        metavar="N",
        help="a fragment, after the first iteration, 10 to 100000 (default: 24)",
    )
    parser.add_argument(
        "--visits",
        type=whole(20, 100_000),
        metavar="N",
        help="of each fragment in an iteration, 20 to 100000 (default: 60)",
    )
    parser.add_argument(
        "--seed", type=whole(0, 2**32 - 1), default=1, metavar="N", help="same seed, same bits (default: 1)"
    )
    parser.add_argument(
        "--workers", type=whole(1, 256), metavar="N", help="threads (default: all cores); no bit depends on it"
    )
    parser.add_argument(
        "--relearn", action="store_true", help="improve fragments that have feedback too, and keep their targets"
    )
    parser.add_argument(
        "--character",
        metavar="FILE.toml",
        type=given,
        help="of the body (default: a graph's own, the built-in one for motions); a graph's targets are where its learning begins",
    )
    parser.add_argument("--resume", action="store_true", help="go on after the last iteration that was finished")
    parser.add_argument("--overwrite", action="store_true", help="replace the output")
    group = parser.add_argument_group("for motion files")
    group.add_argument("--gains", metavar="NAME", help="of the PD servos: locomotion (default) or stunts")
    group.add_argument("--skill", type=given, metavar="NAME", help="of the skill (default: the file's)")
    group.add_argument(
        "--symmetric",
        choices=("auto", "yes", "no"),
        help="learn one side of a gait (default: if it is symmetric)",
    )
    group.add_argument(
        "--phase-reset",
        choices=("yes", "no"),
        help="fragments at whose end a foot comes down end when it does (default: no)",
    )
    group.add_argument(
        "--height",
        type=number(0.8, 2.4),
        metavar="M",
        help="body height (default: 1.75; a graph's own)",
    )
    add_time_arguments(group, "motion", "frames a second of a file whose own rate cannot be true, or that holds none")
    add_correction_arguments(group)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Reads, learns, writes the graph and its learning curve."""
    from mocap2ctrl.files import write_bytes
    from mocap2ctrl.fit.capture import check_place, make_folder
    from mocap2ctrl.fit.lock import alone
    from mocap2ctrl.report.learning import plot_learning
    from mocap2ctrl.samcon.progressive import learn_in_parts

    output = Path(options.output)
    if output.suffix != ".json":
        raise ConfigError(f"-o {output}: a learned graph's name ends in .json")
    if output.resolve() == Path(options.input).resolve():
        raise ConfigError(f"-o {output}: is the input, with which an interrupted learning goes on; give another name")
    plot = output.with_suffix(".png")
    check_place(output.parent)
    graph, config = _graph(options), _config(options)
    make_folder(output.parent)
    with alone(output), LearningDisplay() as display:
        learned = learn_in_parts(
            graph,
            output,
            config,
            threads=options.workers or os.cpu_count() or 1,
            resume=options.resume,
            overwrite=options.overwrite,
            beside=(plot,),
            progress=display.progress,
        )
    if not learned.history:  # all was learned before, but was not yet where it belongs
        if options.json:
            print_json({"graph": str(output)})
        else:
            print(f"wrote {output}")
        return 0
    write_bytes(plot, plot_learning(learned.parts or {"": learned.history}))
    best = learned.best
    if options.json:
        print_json(
            {
                "graph": str(output),
                "fragments": len(learned.graph.fragments),
                "iterations": len(learned.history),
                "best_iteration": best.number,
                "undisturbed_s": best.undisturbed_s,
                "pushed_s": best.pushed_s,
                "plot": str(plot),
            }
        )
        return 0
    print(
        f"{output}: {len(learned.graph.fragments)} fragments; iteration {best.number} of {len(learned.history)} is the best: "
        f"{best.undisturbed_s:.0f} s undisturbed, {best.pushed_s:.0f} s under growing pushes"
    )
    print(f"wrote {output}, {plot}")
    before = _stood_s(graph, config.trials.push_s)
    if options.relearn and before is not None and before > best.pushed_s:
        note(
            f"note: {options.input} stood {before:.0f} s under growing pushes when it was learned, which is longer: keep it"
        )
    return 0


def _stood_s(graph: ControlGraph, push_s: float) -> float | None:
    """How long what was learned before stood under growing pushes as long as these, if its file tells."""
    from mocap2ctrl.samcon.performance import PUSH_S

    try:
        learning: Any = graph.provenance["learning"]
        if learning["config"]["trials"].get("push_s", PUSH_S) != push_s:
            return None
        return float(max(entry["pushed_s"] for entry in learning["iterations"]))
    except (KeyError, TypeError, ValueError):
        return None


def kept(options: argparse.Namespace) -> str:
    """What an interruption leaves, in words."""
    from mocap2ctrl.samcon.progressive import resumable

    if resumable(Path(options.output)):
        return "go on with --resume"
    return "nothing is kept: the open-loop control, which comes first, had not ended"


def _config(options: argparse.Namespace) -> LearnConfig:
    from mocap2ctrl.samcon.learn import LearnConfig

    config = LearnConfig(seed=options.seed, relearn=options.relearn)
    wanted = {"iterations": options.iterations, "samples": options.samples, "visits": options.visits}
    guided = replace(config.guided, **{k: v for k, v in wanted.items() if v is not None})
    guided = replace(guided, first_samples=min(guided.first_samples, 2 * guided.samples))
    sides = options.push_sides and tuple(newtons / max(options.push_sides) for newtons in options.push_sides)
    harder = {"iterations": options.hardening, "push_s": options.push_for, "push_sides": sides}
    hardening = replace(config.hardening, **{k: v for k, v in harder.items() if v is not None})
    if guided.iterations == 0 and not (options.relearn and hardening.iterations):
        raise ConfigError("--iterations 0: nothing would be learned; it is for --relearn with --hardening 1 or more")
    if sides and not hardening.iterations:
        raise ConfigError("--push-sides: --hardening 0 leaves out what it is for; leave out one of the two")
    return replace(config, guided=guided).hardened_by(hardening)


def _unlearned(path: Path) -> ConfigError:
    """Nothing is there that could be learned again."""
    return ConfigError(f"--relearn improves what is learned; nothing of {path} is, so leave it out")


def _graph(options: argparse.Namespace) -> ControlGraph:
    """The graph to learn: from a file, or made from a motion."""
    from mocap2ctrl.character.model import load_character
    from mocap2ctrl.graph.body import character_of, digest
    from mocap2ctrl.graph.file import is_graph_file, read_graph
    from mocap2ctrl.graph.retarget import retargeted

    path = Path(options.input)
    if is_graph_file(path):
        for name in (
            "gains",
            "skill",
            "symmetric",
            "phase_reset",
            "time_range",
            "fps",
            "unit",
            "up",
            "skeleton",
            "joint_map",
        ):
            if getattr(options, name) is not None:
                raise ConfigError(f"--{name.replace('_', '-')} is for motion files; {path} is a graph")
        graph = read_graph(path)
        if options.relearn and all(fragment.policy is None for fragment in graph.fragments.values()):
            raise _unlearned(path)
        if options.character is None and options.height is None:
            return graph
        if options.relearn:
            other = "--height" if options.character is None else "--character"
            raise ConfigError(
                f"--relearn goes on with a body's own feedback, of which {other} has none; give one of them"
            )
        own = character_of(graph)
        if options.character is None and digest(own) != digest(load_character(height_m=own.height_m)):
            raise ConfigError(
                f"--height {options.height:g}: the body of {path} is not the built-in one; give --character too"
            )
        return retargeted(graph, load_character(options.character, height_m=options.height))
    if options.relearn:
        raise _unlearned(path)
    from mocap2ctrl.motion.load import load_motion
    from mocap2ctrl.motion.stated import Stated
    from mocap2ctrl.samcon.cycle import motion_graph
    from mocap2ctrl.simulation.pd_gains import GAIN_SETS

    gains = options.gains or "locomotion"
    if gains not in GAIN_SETS:
        raise ConfigError(f"--gains {gains}: allowed are {' and '.join(GAIN_SETS)}")
    character = load_character(options.character, height_m=options.height)
    loaded = load_motion(
        options.input,
        character,
        time_range=tuple(options.time_range) if options.time_range else None,
        stated=Stated(options.skeleton, options.fps, options.unit, options.up, options.joint_map),
    )
    try:
        graph, told = motion_graph(
            loaded.clip,
            character,
            skill=options.skill or loaded.clip.name,
            gains=gains,
            mirrored={"yes": True, "no": False}.get(options.symmetric),
            phase_reset=options.phase_reset == "yes",
        )
    except MotionFileError as error:
        raise MotionFileError(
            f"{error}; what is done once is learned with a cycle that it leads to: see export-graph --rising"
        ) from error
    for line in (*loaded.warnings, *told):
        note(f"note: {line}")
    return graph
