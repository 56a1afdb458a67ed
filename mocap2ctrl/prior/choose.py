"""Finds a prior by its name among those shipped, or by its path."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import PriorError
from mocap2ctrl.prior.files import read_prior
from mocap2ctrl.prior.pca import IdentityPrior, Prior

NO_PRIOR = ("identity", "none")
IDENTITY_SPREAD_RAD = 0.15
"""Spread of each angle where there is no prior: about what an optimiser should try at first."""


def priors_directory() -> Path | None:
    """The folder of shipped priors: in the package when installed, beside it in a checkout; None if neither exists."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "priors", package.parent / "priors"):
        if next(folder.glob("*.npz"), None) is not None:
            return folder
    return None


def shipped_priors() -> tuple[str, ...]:
    """Names of the priors that come with the package, in alphabetical order."""
    folder = priors_directory()
    return () if folder is None else tuple(sorted(path.stem for path in folder.glob("*.npz")))


def load_prior(
    name_or_path: Path | str,
    character: Character,
    *,
    spread_rad: float = IDENTITY_SPREAD_RAD,
    others: tuple[str, ...] = NO_PRIOR,
) -> Prior:
    """A prior by name (`walk`, `all`, `all-but-walk`, …), by path (`.npz`), or `identity` or `none` for no prior.

    Args:
        name_or_path: which.
        character: whose poses it must describe.
        spread_rad: the identity's spread.
        others: names that an error lists beside those shipped.

    Raises:
        PriorError: unknown (the known ones are listed), damaged, or for another character.
    """
    name = str(name_or_path)
    if name.lower() in NO_PRIOR:
        return IdentityPrior(len(character.hinges), np.array(spread_rad))
    if name.endswith(".npz"):
        if not Path(name).is_file():
            raise PriorError(f"{name}: no such file; give an existing prior .npz or a name: {_known(others)}")
        return read_prior(name, character)
    folder = priors_directory()
    if folder is None or name not in shipped_priors():
        raise PriorError(f"no prior called {name!r}; allowed are {_known(others)}, or the path of a prior .npz")
    return read_prior(folder / f"{name}.npz", character)


def _known(others: tuple[str, ...]) -> str:
    return ", ".join((*others, *shipped_priors()))
