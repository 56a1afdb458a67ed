"""Learning a graph in parts: first what walks come back to, then the rising skills that only lead there (Liu 2016, §6.2)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from mocap2ctrl.files import refuse_existing
from mocap2ctrl.graph.core import comes_back
from mocap2ctrl.graph.file import read_graph
from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.samcon.checkpoint import STATE
from mocap2ctrl.samcon.learn import LearnConfig, Learned, Progress, learn
from mocap2ctrl.samcon.performance import Trials
from mocap2ctrl.samcon.rising import rising

RISING_SAMPLES, RISING_DEVIATION_DEG = 500, 8.0
"""N_s and σ of the open-loop control of rising skills. Ours: with 300 and 5°, as for others, the body does not get up."""
RISING_ROUNDS, ROUND_VISITS, RISING_VISITS = 3, 1, 5
ITERATIONS, GUIDED_VISITS, GUIDED_PUSH_N, LOOKAHEAD = 3, 24, 30.0, 3
"""At most: iterations, and visits of each fragment in one; σ of the first pushes, newtons; fragments of lookahead. Ours: lying
bodies come together by themselves, so that the first iteration already rises."""
FIRST_SAMPLES = 80
"""N_s of the first iteration, at least."""
RUNS, ON_S = 40, 5.0
"""Falls after which an iteration is tested, and how long they must go on after the rising skill."""


def learn_in_parts(
    graph: ControlGraph,
    output: Path,
    config: LearnConfig,
    *,
    threads: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    beside: Sequence[Path] = (),
    progress: Callable[[Progress], None] = lambda progress: None,
) -> Learned:
    """`learn`, but of rising skills after all else, which is in `output.core.json` until they are learned, too. See `learn`.

    With `config.relearn` all is improved at once.
    """
    roads = [name for name in graph.fragments if not comes_back(name, graph.successors)]
    rises = bool(rising(graph))
    if config.relearn or not rises or not _lacks(graph, roads):
        whole = _without_hardening(config) if rises else config
        return learn(
            graph, output, whole, threads=threads, resume=resume, overwrite=overwrite, beside=beside, progress=progress
        )
    core, first = _without(graph, roads), _core_file(output)
    parted = _lacks(core, core.fragments)
    if parted:
        if not resume:
            refuse_existing(output, *beside, overwrite=overwrite)
        if not (resume and first.is_file() and not first.with_suffix(".learning").is_dir()):
            learn(core, first, config, threads=threads, resume=resume, overwrite=overwrite, progress=progress)
        graph = replace(graph, fragments={**graph.fragments, **read_graph(first).fragments})
        resume = resume and output.with_suffix(".learning").is_dir()
    done = learn(
        graph, output, rising_config(config, graph, roads), threads=threads, resume=resume, overwrite=overwrite,
        beside=beside, progress=progress,
    )  # fmt: skip
    if parted:
        first.unlink(missing_ok=True)
    return done


def resumable(output: Path) -> bool:
    """Whether an interrupted learning of `output` can be gone on with."""
    begun = any((file.with_suffix(".learning") / STATE).is_file() for file in (output, _core_file(output)))
    return begun or _core_file(output).is_file()


def _core_file(output: Path) -> Path:
    """Where the graph is without its rising skills, until they are learned."""
    return output.with_suffix(".core.json")


def rising_config(config: LearnConfig, graph: ControlGraph, roads: Collection[str]) -> LearnConfig:
    """How the rising skills of `graph`, with the fragments `roads`, are learned where `config` is for the rest.

    An iteration is tested by falls, and how long the body then goes on, until `ON_S` after the longest rising skill.
    """
    skills = {graph.fragments[name].skill for name in roads}
    longest_s = max(sum(f.duration_s for f in graph.fragments.values() if f.skill == skill) for skill in skills)
    open_loop = replace(
        config.open_loop,
        rounds=RISING_ROUNDS,
        round_visits=ROUND_VISITS,
        visits=RISING_VISITS,
        samples=RISING_SAMPLES,
        deviation_deg=RISING_DEVIATION_DEG,
    )
    guided = replace(
        config.guided,
        first_samples=max(config.guided.first_samples, FIRST_SAMPLES),
        iterations=min(config.guided.iterations, ITERATIONS),
        visits=min(config.guided.visits, GUIDED_VISITS),
        push_n=GUIDED_PUSH_N,
        lookahead=LOOKAHEAD,
    )
    trials = Trials(RUNS, longest_s + ON_S)
    return replace(_without_hardening(config), open_loop=open_loop, guided=guided, trials=trials)


def _without_hardening(config: LearnConfig) -> LearnConfig:
    """Bodies that lie are not pushed over."""
    return replace(config, hardening=replace(config.hardening, iterations=0))


def _lacks(graph: ControlGraph, names: Collection[str]) -> bool:
    """Whether one of the fragments `names` has no policy."""
    return any(graph.fragments[name].policy is None for name in names)


def _without(graph: ControlGraph, names: Collection[str]) -> ControlGraph:
    """A graph without some of its fragments."""
    kept = [name for name in graph.fragments if name not in names]
    after = {name: tuple(other for other in graph.successors.get(name, ()) if other in kept) for name in kept}
    return replace(graph, fragments={name: graph.fragments[name] for name in kept}, successors=after)
