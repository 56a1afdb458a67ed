"""`learn`: from a graph without feedback, or a looping motion, to a graph with it; can be interrupted and gone on with."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import mocap2ctrl
from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import GraphError
from mocap2ctrl.files import refuse_existing
from mocap2ctrl.graph.body import character_of
from mocap2ctrl.graph.file import write_graph
from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.samcon.checkpoint import Checkpoint, CheckpointFolder
from mocap2ctrl.samcon.guided import GuidedConfig, GuidedLearning, Iteration
from mocap2ctrl.samcon.hardening import Hardening, HardeningConfig
from mocap2ctrl.samcon.open_loop import OpenLoopConfig, refine
from mocap2ctrl.samcon.performance import Trials
from mocap2ctrl.samcon.rising import starts_of
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts
from mocap2ctrl.simulation.pd_gains import pd_gains


@dataclass(frozen=True)
class LearnConfig:
    """How a graph is learned.

    Attributes:
        open_loop, guided, hardening: the three stages.
        trials: how good an iteration is, how that is told.
        seed: of all that is drawn.
        relearn: fragments that have a policy are improved, and their targets kept; else they are left as they are (§6.2).
    """

    open_loop: OpenLoopConfig = field(default_factory=OpenLoopConfig)
    guided: GuidedConfig = field(default_factory=GuidedConfig)
    hardening: HardeningConfig = field(default_factory=HardeningConfig)
    trials: Trials = field(default_factory=Trials)
    seed: int = 1
    relearn: bool = False

    def hardened_by(self, hardening: HardeningConfig) -> LearnConfig:
        """With that hardening, and tests by pushes as long as its; of what is hardened alone, for it was hardened before."""
        again = hardening.again() if self.guided.iterations == 0 else hardening
        return replace(self, hardening=again, trials=replace(self.trials, push_s=hardening.push_s))


class Opening(Protocol):
    """Makes the fragments feasible whose feedback is to be learned."""

    def __call__(
        self,
        graph: ControlGraph,
        character: Character,
        rollouts: PdRollouts,
        config: OpenLoopConfig,
        seed: int,
        *,
        frozen: Sequence[str] = (),
        progress: Callable[[str, float], None] = ...,
    ) -> ControlGraph:
        """The graph with targets, references or policies with which the body gets through; `frozen` stay as they are."""


@dataclass(frozen=True)
class Progress:
    """How far learning is.

    Attributes:
        what: is being done.
        share: of that, that is done.
        iteration, iterations: of guided learning and of hardening; 0 before them.
        history: of the iterations that are done.
        part: of the graph, that is being learned; empty if it is all of it.
        hardening: how many of the iterations, the last ones, harden.
    """

    what: str
    share: float
    iteration: int
    iterations: int
    history: Sequence[Iteration]
    part: str = ""
    hardening: int = 0


@dataclass(frozen=True, eq=False)
class Learned:
    """The graph of the best iteration, and how all of them went.

    Attributes:
        graph: what was learned.
        history: of the iterations.
        core_s: processor seconds of the open-loop refinement and of each iteration.
        parts: iterations by part, of a graph that is learned in parts.
    """

    graph: ControlGraph
    history: tuple[Iteration, ...]
    core_s: tuple[float, ...]
    parts: Mapping[str, tuple[Iteration, ...]] = field(default_factory=dict)

    @property
    def best(self) -> Iteration:
        """The one that the graph is from: that with the longest resisting time."""
        return best_of(self.history)


def best_of(history: Sequence[Iteration]) -> Iteration:
    """The iteration that stands longest under pushes; of equals the first."""
    return max(history, key=lambda iteration: (iteration.pushed_s, -iteration.number))


def learn(
    graph: ControlGraph,
    output: Path,
    config: LearnConfig,
    *,
    threads: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    beside: Sequence[Path] = (),
    progress: Callable[[Progress], None] = lambda progress: None,
    opening: Opening = refine,
    clear: bool = True,
) -> Learned:
    """Algorithm 2. After each iteration `output` holds the best graph so far, and a folder beside it what resuming needs.

    Args:
        graph: what to learn.
        output: the file of the learned graph.
        config: how.
        threads: that share the simulations; they do not change the result.
        resume: go on with an earlier call that was the same but for `threads` and the number of iterations.
        overwrite: `output` may be replaced.
        beside: other files that the caller will write, under the same rule.
        progress: is told how far it is.
        opening: what is done before feedback is learned.
        clear: remove the folder at the end; else the same call with `resume` gives the same at once.

    Raises:
        ConfigError: `output`, or an interrupted learning of it, is there already.
        GraphError: nothing is to be learned, it cannot be, or what is resumed was another task.
    """
    frozen = [] if config.relearn else [name for name, f in graph.fragments.items() if f.policy is not None]
    if len(frozen) == len(graph.fragments):
        raise GraphError("every fragment of the graph has a policy already; --relearn improves them")
    character = character_of(graph)
    folder = CheckpointFolder(output, graph, config)
    if not resume:
        if not overwrite:
            folder.refuse()
        refuse_existing(output, *beside, overwrite=overwrite)
        folder.clear()
    state = folder.load() if resume else None
    total = config.guided.iterations + config.hardening.iterations
    history: list[Iteration] = list(state.history) if state else []

    def tell(what: str, share: float, iteration: int = 0) -> None:
        progress(Progress(what, share, iteration, total, tuple(history), hardening=config.hardening.iterations))

    with PdRollouts(character, pd_gains(character, graph.gains), threads=threads) as rollouts:
        begun = time.process_time()
        if state is None:
            if not config.relearn:
                graph = opening(graph, character, rollouts, config.open_loop, config.seed, frozen=frozen, progress=tell)
            state = Checkpoint(graph, graph, (), (time.process_time() - begun,))
            folder.save(state)
        begun_with, trials, seed = state.graph, config.trials, config.seed
        starts = starts_of(begun_with, rollouts, seed)
        guided = GuidedLearning(begun_with, character, rollouts, config.guided, trials, starts, seed, frozen)
        hardening = Hardening(begun_with, character, rollouts, config.hardening, trials, starts, seed, frozen)
        guided.restore(history)
        hardening.restore(history)
        best, core_s = state.best, list(state.core_s)
        for number in range(len(history) + 1, total + 1):
            begun = time.process_time()
            learning: GuidedLearning | Hardening = guided
            if number > config.guided.iterations:
                learning = hardening
                if number == config.guided.iterations + 1:
                    hardening.graph = best
            history.append(learning.iterate(number, partial(tell, iteration=number)))
            core_s.append(time.process_time() - begun)
            if best_of(history).number == number:
                best = learning.graph
                write_graph(_signed(best, config, history), output)
            folder.save(Checkpoint(learning.graph, best, tuple(history), tuple(core_s)))
            tell("iterations", 1.0, number)
    done = _signed(best, config, history)
    write_graph(done, output)
    if clear:
        folder.clear()
    return Learned(done, tuple(history), tuple(core_s))


def _signed(graph: ControlGraph, config: LearnConfig, history: Sequence[Iteration]) -> ControlGraph:
    """The graph with how it was learned in its provenance."""
    how = {
        "version": mocap2ctrl.__version__,
        "config": asdict(config),
        "iterations": [asdict(iteration) for iteration in history],
        "best_iteration": best_of(history).number if history else None,
    }
    return replace(graph, provenance={**graph.provenance, "learning": how})
