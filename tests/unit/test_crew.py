"""Who evaluates: what a user may ask for, and what is refused in one line."""

from __future__ import annotations

import multiprocessing
import sys

import pytest

from mocap2ctrl.errors import ConfigError
from mocap2ctrl.fit.crew import Crew, LocalProcesses, default_workers, open_crew


@pytest.mark.parametrize(("workers", "kind"), [(1, Crew), (3, LocalProcesses)])
def test_workers_are_processes_here_but_for_a_single_one(workers: int, kind: type[Crew]) -> None:
    with open_crew(workers, None) as crew:
        assert type(crew) is kind
        assert not crew.remote


def test_workers_start_before_there_is_anything_to_do_and_end_without_it() -> None:
    before = set(multiprocessing.active_children())
    with open_crew(3, None) as crew:
        assert set(multiprocessing.active_children()) == before
        crew.start()
        started = set(multiprocessing.active_children()) - before
        assert len(started) == 2
        assert crew.executor().submit(_has_loaded, "mocap2ctrl.fit.worker").result()
    assert not any(process.is_alive() for process in started)


def _has_loaded(module: str) -> bool:
    return module in sys.modules


def test_all_cores_unless_told() -> None:
    with open_crew(None, None) as crew:
        assert type(crew) is (Crew if default_workers() == 1 else LocalProcesses)


@pytest.mark.parametrize("library", ["mpi4py", "distributed"])
def test_a_library_that_is_not_installed_is_one_line(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    for name in [name for name in sys.modules if name.startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, name)
    scheduler = "mpi" if library == "mpi4py" else "tcp://127.0.0.1:8786"
    with (
        pytest.raises(ConfigError, match=f"not installed here; pip install {library}"),
        open_crew(None, scheduler),
    ):
        pass


@pytest.mark.parametrize(
    "scheduler", ["127.0.0.1:8786", "http://127.0.0.1:8787", "tcp://127.0.0.1", "tcp://", "dask", ""]
)
def test_a_scheduler_that_is_none_is_refused(scheduler: str) -> None:
    with (
        pytest.raises(ConfigError, match=r"allowed is tcp://HOST:PORT of a Dask scheduler, or mpi"),
        open_crew(None, scheduler),
    ):
        pass


@pytest.mark.parametrize("scheduler", ["mpi", "tcp://127.0.0.1:8786"])
def test_a_scheduler_has_its_own_workers(scheduler: str) -> None:
    with pytest.raises(ConfigError, match=r"--workers 2 and --scheduler .* both given"), open_crew(2, scheduler):
        pass


def test_no_workers_at_all_are_refused() -> None:
    with pytest.raises(ConfigError, match="workers is 0; allowed is 1 or more"), open_crew(0, None):
        pass
