"""The floors of the package, the doors to third-party engines, and what no module may do: read from the syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath

import pytest

ROOT = "mocap2ctrl"
PACKAGE = Path(__file__).resolve().parents[2] / ROOT

# DESIGN: a module imports only from its own floor and from those above it in this list.
FLOORS = (
    ("errors",),
    ("types",),
    ("files", "compiled"),
    ("geometry",),
    ("character",),
    ("motion",),
    ("video",),
    ("prior",),
    ("track",),
    ("simulation",),
    ("control",),
    ("objective",),
    ("fit",),
    ("evaluation",),
    ("graph",),
    ("samcon",),
    ("policies",),
    ("skills",),
    ("bellman",),
    ("report",),
    ("api",),
    ("cli",),
)
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}
ROOT_FILES = {"": -1, "__main__": len(FLOORS)}
"""`mocap2ctrl/__init__.py` is above all floors, `__main__.py` below them."""
LAZY_ALLOWED = ("__init__.py", "__main__.py")
"""The package's own two files may import from any floor, inside functions: they are its public face."""

DOORS = {
    "mujoco": "simulation/mujoco*.py",
    "pybullet": "simulation/bullet.py",
    "cma": "fit/cmaes.py",
    "c3d": "motion/c3d.py",
    "numba": "compiled.py",
    "llvmlite": "compiled.py",
    "distributed": "fit/dask_crew.py",
    "mpi4py": "fit/mpi_crew.py",
}
PICKLES = ("pickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal")
PLOT_STATES = ("matplotlib.pyplot", "matplotlib.pylab", "pylab")


@dataclass(frozen=True)
class Import:
    """One imported module.

    Attributes:
        name: dotted, absolute.
        line: where.
        lazy: inside a function.
        typing: under `if TYPE_CHECKING`, so not run.
    """

    name: str
    line: int
    lazy: bool
    typing: bool


@dataclass(frozen=True)
class Module:
    """One source file: its path in the package, dotted name, and syntax tree."""

    path: str
    name: str
    tree: ast.Module

    @property
    def top(self) -> str:
        """The folder or file just below the package's root; empty for the root itself."""
        return self.name.partition(".")[2].partition(".")[0]


def read_modules(package: Path) -> dict[str, Module]:
    """Dotted name to module, of every Python file in the package."""
    modules = {}
    for file in sorted(package.rglob("*.py")):
        path = PurePosixPath(file.relative_to(package).as_posix())
        parts = [ROOT, *path.with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = Module(str(path), name, ast.parse(file.read_text(encoding="utf-8"), str(file)))
    return modules


def walk(node: ast.AST, lazy: bool = False, typing: bool = False) -> Iterator[tuple[ast.AST, bool, bool]]:
    """Every node below, and whether it is inside a function, and whether it is for type checkers only."""
    yield node, lazy, typing
    inner = lazy or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    children = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        for child in node.body:
            yield from walk(child, inner, True)
        children = iter(node.orelse)
    for child in children:
        yield from walk(child, inner, typing)


def imports(module: Module, modules: dict[str, Module]) -> Iterator[Import]:
    """What a module imports, in whatever way the syntax tree shows it."""
    for node, lazy, typing in walk(module.tree):
        for name in imported_names(node, module):
            yield Import(resolved(name, modules), getattr(node, "lineno", 0), lazy, typing)


def imported_names(node: ast.AST, module: Module) -> list[str]:
    """Dotted names that one node imports; for `from a import b` it is `a.b`, be that a module or not."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            package = module.name.split(".") if module.path.endswith("__init__.py") else module.name.split(".")[:-1]
            base = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
        return [f"{base}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == ROOT:
        return [f"{ROOT}.{node.attr}"]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in (
        "importlib.import_module",
        "import_module",
        "__import__",
    ):
        return [a.value for a in node.args[:1] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    return []


def resolved(name: str, modules: dict[str, Module]) -> str:
    """The module that holds `name`; what the package's root hands out lazily is the API's."""
    if name == ROOT or not name.startswith(f"{ROOT}."):
        return name
    while name not in modules:
        holder, _, attribute = name.rpartition(".")
        if holder == ROOT:
            return ROOT if attribute.startswith("__") else f"{ROOT}.api"
        name = holder
    return name


def floor_of(name: str) -> int | None:
    """The number of a module's floor, from 0; None if it has none."""
    top = name.partition(".")[2].partition(".")[0]
    return ROOT_FILES[top] if top in ROOT_FILES else FLOOR.get(top)


def floor_violations(modules: dict[str, Module]) -> Iterator[str]:
    """Modules without a floor, and imports from a floor below."""
    for module in modules.values():
        own = floor_of(module.name)
        if own is None:
            yield f"{module.path}: has no floor; add {module.top!r} to FLOORS"
            continue
        for imported in imports(module, modules):
            if imported.name.split(".")[0] != ROOT or (
                module.path in LAZY_ALLOWED and (imported.lazy or imported.typing)
            ):
                continue
            other = floor_of(imported.name)
            if other is None or other > own:
                yield f"{module.path}:{imported.line}: imports {imported.name}, which is on a floor below"


def cycle_violations(modules: dict[str, Module]) -> Iterator[str]:
    """A cycle of imports that run when the modules are loaded."""
    graph = {
        module.name: {
            i.name
            for i in imports(module, modules)
            if not i.lazy and not i.typing and i.name in modules and i.name not in (ROOT, module.name)
        }
        for module in modules.values()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield f"import cycle: {' <- '.join(error.args[1])}"


def third_party_violations(modules: dict[str, Module]) -> Iterator[str]:
    """Engines imported beside their door, pickles, and pyplot's global state."""
    for module in modules.values():
        for imported in imports(module, modules):
            where, top = f"{module.path}:{imported.line}", imported.name.split(".")[0]
            if top in DOORS and not fnmatch(module.path, DOORS[top]):
                yield f"{where}: imports {top}; only {DOORS[top]} may"
            if top in PICKLES:
                yield f"{where}: imports {top}; files hold no pickles"
            if any(f"{imported.name}.".startswith(f"{name}.") for name in PLOT_STATES):
                yield f"{where}: imports {imported.name}; draw on a Figure of your own"


def statement_violations(modules: dict[str, Module]) -> Iterator[str]:
    """`assert`, `print` outside the command line, and arrays loaded without `allow_pickle=False`."""
    for module in modules.values():
        loads = numpy_load_names(module)
        for node in ast.walk(module.tree):
            where = f"{module.path}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Assert):
                yield f"{where}: assert; raise an error instead"
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            keywords = {k.arg: ast.unparse(k.value) for k in node.keywords}
            if called == "print" and not module.path.startswith("cli/"):
                yield f"{where}: print outside cli/"
            if keywords.get("allow_pickle", "False") != "False":
                yield f"{where}: allow_pickle is not False"
            elif called in loads and "allow_pickle" not in keywords:
                yield f"{where}: {called} without allow_pickle=False"


def numpy_load_names(module: Module) -> set[str]:
    """What `numpy.load` is called in a module."""
    names = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            names |= {f"{alias.asname or alias.name}.load" for alias in node.names if alias.name == "numpy"}
        if isinstance(node, ast.ImportFrom) and node.module == "numpy":
            names |= {alias.asname or alias.name for alias in node.names if alias.name == "load"}
    return names


RULES = (floor_violations, cycle_violations, third_party_violations, statement_violations)


def violations(package: Path) -> list[str]:
    """Everything in the package that breaks a rule, one line each."""
    modules = read_modules(package)
    return [line for rule in RULES for line in rule(modules)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_package_keeps_the_rule(rule) -> None:
    modules = read_modules(PACKAGE)
    assert len(modules) > 50, "the package was not found"
    assert list(rule(modules)) == []


def test_every_door_that_exists_opens() -> None:
    """A door named here is a file that imports its library: else the rule would guard nothing."""
    modules = read_modules(PACKAGE).values()
    for library, door in DOORS.items():
        for module in modules:
            if fnmatch(module.path, door):
                assert library in {i.name.split(".")[0] for i in imports(module, {})}


# The rules on small trees: each breaks one rule, in one way.

SOUND = {
    "__init__.py": "def __getattr__(name):\n    from mocap2ctrl import api\n    return getattr(api, name)",
    "__main__.py": "from mocap2ctrl.cli.main import main",
    "errors.py": "class Mocap2CtrlError(Exception): ...",
    "compiled.py": "import numba\nfrom llvmlite import ir",
    "motion/__init__.py": "from mocap2ctrl.motion.load import load",
    "motion/load.py": "from mocap2ctrl.errors import Mocap2CtrlError\nfrom mocap2ctrl.motion import names\ndef load(): ...",
    "motion/names.py": "import numpy as np\ndef f(p):\n    return np.load(p, allow_pickle=False)",
    "simulation/mujoco.py": "import mujoco\nfrom mocap2ctrl import __version__",
    "simulation/mujoco_more.py": "import mujoco",
    "fit/cmaes.py": "def f():\n    import cma",
    "api.py": "import mocap2ctrl\nfrom mocap2ctrl.motion import load\nVERSION = mocap2ctrl.__version__",
    "cli/main.py": "from mocap2ctrl import api, fit\nprint('x')",
}

BROKEN = [
    ("an unknown folder", {"extra/thing.py": ""}, "extra/thing.py: has no floor"),
    (
        "an import from below",
        {"motion/up.py": "from mocap2ctrl.api import fit"},
        "motion/up.py:1: imports mocap2ctrl.api",
    ),
    ("a plain import", {"motion/up.py": "\nimport mocap2ctrl.simulation.mujoco"}, "motion/up.py:2: imports"),
    ("a lazy import", {"motion/up.py": "def f():\n    from mocap2ctrl import api"}, "motion/up.py:2: imports"),
    (
        "an import for types",
        {"motion/up.py": "if TYPE_CHECKING:\n    from mocap2ctrl.cli import main"},
        "motion/up.py:2: imports mocap2ctrl.cli.main",
    ),
    ("a relative import", {"motion/up.py": "from ..simulation import mujoco"}, "imports mocap2ctrl.simulation.mujoco"),
    ("a relative import from a package", {"motion/__init__.py": "from ..api import fit"}, "imports mocap2ctrl.api"),
    ("an import by name", {"motion/up.py": "importlib.import_module('mocap2ctrl.api')"}, "imports mocap2ctrl.api"),
    ("a public name", {"motion/up.py": "from mocap2ctrl import load_motion"}, "imports mocap2ctrl.api"),
    ("a public attribute", {"motion/up.py": "import mocap2ctrl\nx = mocap2ctrl.load_motion"}, "up.py:2: imports"),
    ("an eager root", {"__init__.py": "from mocap2ctrl.api import fit"}, "__init__.py:1: imports mocap2ctrl.api"),
    (
        "a cycle",
        {"motion/a.py": "from mocap2ctrl.motion import b", "motion/b.py": "from mocap2ctrl.motion.a import x"},
        "import cycle: mocap2ctrl.motion.",
    ),
    ("an engine beside its door", {"fit/pool.py": "import mujoco"}, "fit/pool.py:1: imports mujoco; only simulation/"),
    ("a part of an engine", {"fit/pool.py": "from mujoco.introspect import structs"}, "imports mujoco"),
    ("pybullet", {"simulation/mujoco.py": "import pybullet as p"}, "imports pybullet; only simulation/bullet.py"),
    ("a lazy optimiser", {"fit/batch.py": "def f():\n    import cma"}, "fit/batch.py:2: imports cma"),
    ("a compiler", {"control/law.py": "from numba import njit"}, "imports numba; only compiled.py"),
    ("a code generator", {"control/law.py": "from llvmlite import ir"}, "imports llvmlite; only compiled.py"),
    ("a pickle", {"files.py": "from pickle import dumps"}, "files.py:1: imports pickle"),
    ("pyplot", {"report/plots.py": "import matplotlib.pyplot as plt"}, "imports matplotlib.pyplot"),
    ("pyplot from its package", {"report/plots.py": "from matplotlib import pyplot"}, "imports matplotlib.pyplot"),
    ("an assertion", {"files.py": "def f(x):\n    assert x"}, "files.py:2: assert"),
    ("a print", {"report/plots.py": "print('x')"}, "report/plots.py:1: print outside cli/"),
    ("a trusting load", {"files.py": "import numpy as np\nnp.load('x')"}, "files.py:2: np.load without"),
    ("a trusting load by name", {"files.py": "from numpy import load as read\nread('x')"}, "read without allow_pickle"),
    (
        "an explicit pickle",
        {"files.py": "import numpy\nnumpy.load('x', allow_pickle=True)"},
        "allow_pickle is not False",
    ),
    ("a pickling save", {"files.py": "import numpy as np\nnp.save('x', y, allow_pickle=True)"}, "allow_pickle is not"),
]


def write_tree(folder: Path, files: dict[str, str]) -> Path:
    package = folder / ROOT
    for path, source in files.items():
        (package / path).parent.mkdir(parents=True, exist_ok=True)
        (package / path).write_text(source, encoding="utf-8")
    return package


def test_a_sound_tree_has_no_violation(tmp_path: Path) -> None:
    assert violations(write_tree(tmp_path, SOUND)) == []


@pytest.mark.parametrize(("change", "expected"), [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN])
def test_a_broken_tree_has_one_violation(tmp_path: Path, change: dict[str, str], expected: str) -> None:
    found = violations(write_tree(tmp_path, {**SOUND, **change}))
    assert len(found) == 1, found
    assert expected in found[0]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("if TYPE_CHECKING:\n    from mocap2ctrl.motion import b", id="for types"),
        pytest.param("def f():\n    from mocap2ctrl.motion import b", id="lazy"),
    ],
)
def test_imports_that_do_not_run_at_load_make_no_cycle(tmp_path: Path, source: str) -> None:
    change = {"motion/a.py": source, "motion/b.py": "from mocap2ctrl.motion.a import x"}
    assert violations(write_tree(tmp_path, {**SOUND, **change})) == []
