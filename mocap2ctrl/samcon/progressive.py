"""Learning a graph in parts (progressive learning, Liu 2016, §6.2): cycles, ways between them, the rest, rising skills."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from mocap2ctrl.errors import GraphError
from mocap2ctrl.files import refuse_existing
from mocap2ctrl.graph.core import comes_back
from mocap2ctrl.graph.file import write_graph
from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.graph.learned import rings
from mocap2ctrl.graph.ways import ways
from mocap2ctrl.samcon.checkpoint import STATE, CheckpointFolder, another_task, interrupted, key_of, read_kept
from mocap2ctrl.samcon.guided import Iteration
from mocap2ctrl.samcon.joining import joined
from mocap2ctrl.samcon.learn import LearnConfig, Learned, Opening, Progress, learn
from mocap2ctrl.samcon.open_loop import refine
from mocap2ctrl.samcon.performance import Trials
from mocap2ctrl.samcon.rising import rising

PARTS = "parts"
"""Where a graph's provenance tells of them."""
KEY = "task"
"""Where that of an unfinished graph tells what it was begun with."""
RISING_SAMPLES, RISING_DEVIATION_DEG = 500, 8.0
"""N_s and σ of the open-loop control of rising skills. Ours: with 300 and 5°, as for others, the body does not get up."""
RISING_ROUNDS, ROUND_VISITS, RISING_VISITS = 3, 1, 5
ITERATIONS, GUIDED_VISITS, GUIDED_PUSH_N, LOOKAHEAD = 3, 24, 30.0, 3
"""At most: iterations, and visits of each fragment in one; σ of the first pushes, newtons; fragments of lookahead. Ours: lying
bodies come together by themselves, so that the first iteration already rises."""
FIRST_SAMPLES = 80
"""N_s of the first iteration, at least."""
WAYS_ITERATIONS, WAYS_UPDATES, WAYS_ACTIONS, WAYS_PUSH_N = 3, 20, 500, 50.0
"""Of hardening the ways between cycles: iterations at most, updates in one, actions of a fragment for an update, and newtons of the
largest pushes at first."""
RUNS, ON_S = 40, 5.0
"""Falls after which an iteration is tested, and how long they must go on after the rising skill."""


@dataclass(frozen=True)
class Part:
    """What of a graph is learned at once.

    Attributes:
        name: for people, and for provenance.
        learned: names of the fragments that are.
        within: names of those among which they are; the others stay as they are.
        config: how.
        opening: what makes fragments feasible before their feedback is learned.
    """

    name: str
    learned: tuple[str, ...]
    within: tuple[str, ...]
    config: LearnConfig
    opening: Opening = refine


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
    """`learn`, part by part; what is learned so far is in `output.parts.json` until all is. See `learn`, and `parts`.

    Returns:
        The graph, the iterations of the last part that this call has learned, and the processor seconds of all parts.
    """
    todo = parts(graph, config)
    if len(todo) == 1 and len(todo[0].within) == len(graph.fragments):
        return learn(
            graph, output, todo[0].config, threads=threads, resume=resume, overwrite=overwrite, beside=beside,
            progress=progress, opening=todo[0].opening,
        )  # fmt: skip
    whole, piece, key = _parts_file(output), _part_file(output), key_of(graph, config)
    if not resume:
        if not overwrite and resumable(output):
            raise interrupted(output)
        refuse_existing(output, *beside, overwrite=overwrite)
        whole.unlink(missing_ok=True)
    elif whole.is_file():
        graph = _gone_on(read_kept(whole), key, output)
    elif not resumable(output):
        raise GraphError(f"{output}: there is nothing to resume; {whole.name} is not there")
    history: tuple[Iteration, ...] = ()
    for part in [part for part in todo if _lacks(graph, part.learned)]:
        within = _only(graph, part.within)
        folder = CheckpointFolder(piece, within, part.config)
        stale = whole.is_file() and not folder.is_mine  # of a part that was put in, before it could be removed
        done = learn(
            within, piece, part.config, threads=threads, resume=resume and folder.begun and not stale, overwrite=True,
            progress=partial(_tell, progress, part.name), opening=part.opening, clear=False,
        )  # fmt: skip
        graph, history = _merged(graph, done, part), done.history
        write_graph(replace(graph, provenance={**graph.provenance, KEY: key}), whole)
        folder.clear()
        piece.unlink(missing_ok=True)
    core_s = tuple(float(how["core_s"]) for how in _told(graph).values())
    told = {name: how["learning"] for name, how in _told(graph).items()}  # without times: same seed, same bits
    graph = replace(graph, provenance={**graph.provenance, PARTS: told})
    write_graph(graph, output)
    whole.unlink(missing_ok=True)
    histories = {p.name: _history(told[p.name]) for p in todo}
    return Learned(graph, history, core_s, histories)


def parts(graph: ControlGraph, config: LearnConfig) -> list[Part]:
    """What of a graph is learned one after the other, of that which lacks a policy.

    Each cycle by itself, if there are several; the ways between cycles, from what these have learned; what else walks come back
    to; rising skills. With `config.relearn` all is improved at once.
    """
    everything = tuple(graph.fragments)
    roads = tuple(name for name in everything if not comes_back(name, graph.successors))
    core = tuple(name for name in everything if name not in roads)
    if config.relearn or not _lacks(graph, everything):
        return [Part("all", everything, everything, _without_hardening(config) if rising(graph) else config)]
    found: list[Part] = []
    cycles = rings(_only(graph, core))
    if len(cycles) > 1:
        found += [Part(name, ring, ring, config) for name, ring in cycles.items()]
        between = tuple(name for way in ways(graph) for name in way.chain)
        tied = {*between, *chain.from_iterable(cycles.values())}
        within = tuple(name for name in core if name in tied)
        found.append(Part("transitions", between, within, ways_config(config), joined))
    known = {name for part in found for name in part.learned}
    found.append(
        Part("the rest" if found else "walks", tuple(name for name in core if name not in known), core, config)
    )
    found.append(Part("rising", roads, everything, rising_config(config, graph, roads) if roads else config))
    return [part for part in found if _lacks(graph, part.learned)]


def _history(how: Mapping[str, Any] | None) -> tuple[Iteration, ...]:
    """The iterations of how a part was learned, if it is told."""
    return tuple(Iteration(**entry) for entry in (how or {}).get("iterations", ()))


def resumable(output: Path) -> bool:
    """Whether an interrupted learning of `output` can be gone on with."""
    begun = any((file.with_suffix(".learning") / STATE).is_file() for file in (output, _part_file(output)))
    return begun or _parts_file(output).is_file()


def _parts_file(output: Path) -> Path:
    """Where the graph is, with the parts that are learned, until all are."""
    return output.with_suffix(".parts.json")


def _part_file(output: Path) -> Path:
    """Where the part is that is learned now."""
    return output.with_suffix(".part.json")


def _told(graph: ControlGraph) -> Mapping[str, Any]:
    """How a graph was learned so far, by part."""
    told = graph.provenance.get(PARTS, {})
    return told if isinstance(told, Mapping) else {}


def _tell(progress: Callable[[Progress], None], part: str, p: Progress) -> None:
    """Progress of a part."""
    progress(replace(p, part=part))


def _gone_on(kept: ControlGraph, key: str, output: Path) -> ControlGraph:
    """What was learned of a graph.

    Raises:
        GraphError: it is another graph's, or was learned by other options.
    """
    provenance = dict(kept.provenance)
    if provenance.pop(KEY, None) != key:
        raise another_task(_parts_file(output))
    return replace(kept, provenance=provenance)


def _merged(graph: ControlGraph, done: Learned, part: Part) -> ControlGraph:
    """The graph with a part that is learned, and its ways where that has them."""
    how = {"core_s": sum(done.core_s), "learning": done.graph.provenance.get("learning")}
    learned, inside = done.graph, set(part.within)
    successors = {
        name: (*learned.successors[name], *(b for b in after if b not in inside)) if name in inside else after
        for name, after in graph.successors.items()
    }
    return replace(
        graph,
        fragments={**graph.fragments, **learned.fragments},
        successors=successors,
        provenance={**graph.provenance, PARTS: {**_told(graph), part.name: how}},
    )


def ways_config(config: LearnConfig) -> LearnConfig:
    """How ways between learned cycles are learned where `config` is for the rest: they are hardened at once.

    Regression would have to find anew what their drafts know, from the few samples that get through them at first.
    """
    hardening = replace(
        config.hardening,
        iterations=max(1, min(config.hardening.iterations, WAYS_ITERATIONS)),
        updates=WAYS_UPDATES,
        actions=WAYS_ACTIONS,
        push_n=WAYS_PUSH_N,
    )
    return replace(config, guided=replace(config.guided, iterations=0), hardening=hardening)


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


def _only(graph: ControlGraph, names: Collection[str]) -> ControlGraph:
    """A graph of some of its fragments."""
    after = {name: tuple(other for other in graph.successors.get(name, ()) if other in names) for name in names}
    return replace(graph, fragments={name: graph.fragments[name] for name in names}, successors=after)
