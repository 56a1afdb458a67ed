"""Fits in a real MPI job: the same bits as here; a killed job is resumed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiny_fit import needs_walk, tiny_capture, tiny_fit

from mocap2ctrl.character.model import Character
from mocap2ctrl.fit.capture import CONTROLLER, JOURNAL
from mocap2ctrl.fit.run import fit_capture

PATIENCE_S = 100.0
GENERATIONS = 12
PROGRAM = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from tiny_fit import tiny_capture
from mocap2ctrl.character.model import load_character
from mocap2ctrl.fit.crew import open_crew
from mocap2ctrl.fit.run import fit_capture
if __name__ == "__main__":
    capture = tiny_capture(Path(sys.argv[1]), load_character(), generations={GENERATIONS})
    with open_crew(None, "mpi") as crew:
        outcome = fit_capture(capture, crew, resume=False)
    assert 0 < outcome.remote_s < outcome.core_s
"""


def mpiexec() -> str | None:
    """MPI's launcher: the one beside this Python, of a wheel, or the machine's."""
    return shutil.which("mpiexec", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))


def mpi_works() -> bool:
    try:
        import mpi4py.futures  # noqa: F401
    except (ImportError, RuntimeError):
        return False
    return mpiexec() is not None


needs_mpi = pytest.mark.skipif(not mpi_works(), reason="no MPI library, mpi4py or mpiexec here")
pytestmark = [needs_walk, needs_mpi]


def started(folder: Path, *, processes: int = 3) -> subprocess.Popen[str]:
    """A job that fits into `folder`: one process that searches, the others evaluate."""
    program = folder.with_suffix(".py")
    program.write_text(PROGRAM)
    command = [str(mpiexec()), "-n", str(processes), sys.executable, "-m", "mpi4py.futures", str(program), str(folder)]
    # Open MPI does not start more processes than there are cores, or root's, unless it is told to.
    allowed = {name: "1" for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")}
    return subprocess.Popen(
        command,
        env={**os.environ, **allowed, "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, character: Character) -> Path:
    """The folder of this process's own fit."""
    folder = tmp_path_factory.mktemp("plain") / "walk"
    tiny_fit(folder, character, generations=GENERATIONS)
    return folder


def same_files(a: Path, b: Path) -> bool:
    return all((a / name).read_bytes() == (b / name).read_bytes() for name in (CONTROLLER, JOURNAL))


def test_the_same_bits_as_here(tmp_path: Path, plain: Path) -> None:
    job = started(tmp_path / "walk")
    said, _ = job.communicate(timeout=PATIENCE_S)
    assert job.returncode == 0, said
    assert said == ""
    assert same_files(tmp_path / "walk", plain)


def test_a_job_that_is_killed_is_resumed_to_the_same_end(tmp_path: Path, plain: Path, character: Character) -> None:
    """MPI ends a job as a whole; what was evaluated is kept."""
    folder, whole = tmp_path / "walk", (plain / JOURNAL).stat().st_size
    job = started(folder, processes=2)
    journal, end = folder / JOURNAL, time.monotonic() + PATIENCE_S
    while not (journal.exists() and journal.stat().st_size > 0.2 * whole):
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < end
        time.sleep(0.002)
    os.killpg(job.pid, signal.SIGKILL)
    job.communicate(timeout=PATIENCE_S)
    capture = tiny_capture(tmp_path / "again", character, generations=GENERATIONS)
    (capture.folder / JOURNAL).write_bytes(journal.read_bytes())
    fit_capture(capture, 1, resume=True)
    assert same_files(capture.folder, plain)


def test_a_process_without_a_job_is_told_how_to_start_one() -> None:
    code = (
        "from mocap2ctrl.fit.crew import open_crew\n"
        "from mocap2ctrl.errors import ConfigError\n"
        "try:\n    with open_crew(None, 'mpi'): pass\nexcept ConfigError as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert "not part of an MPI job; start it with mpiexec -n 5 python -m mpi4py.futures" in ran.stdout
