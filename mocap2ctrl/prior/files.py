"""Prior files: `.npz` without pickles, single precision, with a format version and the clips inside."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import Mocap2CtrlError, PriorError
from mocap2ctrl.files import write_arrays
from mocap2ctrl.prior.pca import PosePrior

FORMAT = 2
_ARRAYS = ("basis", "mean", "sigma", "explained", "angle_centre", "exemplars")


def save_prior(path: Path | str, prior: PosePrior) -> None:
    """Write a prior, under a temporary name first, so that a reader never sees half a file."""
    write_arrays(
        path,
        {
            "format": FORMAT,
            "name": prior.name,
            "hinge_names": list(prior.hinge_names),
            "provenance": json.dumps(dict(prior.provenance)),
            **{name: getattr(prior, name).astype(np.float32) for name in _ARRAYS},
        },
    )


def read_prior(path: Path | str, character: Character) -> PosePrior:
    """Read a prior and check that it was made for the hinges of `character`.

    Raises:
        PriorError: missing, damaged, of another version, or for other hinges.
    """
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as data:
            return _prior({key: data[key] for key in data.files}, str(path), character)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise PriorError(f"{path}: not a readable prior .npz; give one that train-prior has written") from error
    except KeyError as error:
        raise PriorError(f"{path}: the entry {error} is missing; train the prior again") from error
    except (TypeError, AttributeError) as error:
        raise _no_prior(path) from error


def _prior(data: dict[str, np.ndarray], path: str, character: Character) -> PosePrior:
    if not data.keys() & {"basis", "exemplars"}:
        raise _no_prior(path)
    if int(data["format"]) != FORMAT:
        raise PriorError(f"{path}: format {int(data['format'])}; this version reads format {FORMAT}")
    names = tuple(str(name) for name in data["hinge_names"])
    if names != character.hinge_names:
        raise PriorError(
            f"{path}: made for {len(names)} hinges ({', '.join(names[:3])}, …), but character {character.name!r} has "
            f"{len(character.hinge_names)} ({', '.join(character.hinge_names[:3])}, …); train one for this character"
        )
    try:
        return PosePrior(
            name=str(data["name"]),
            hinge_names=names,
            provenance=json.loads(str(data["provenance"])),
            **{name: data[name] for name in _ARRAYS},
        )
    except Mocap2CtrlError as error:
        raise PriorError(f"{path}: {error}") from error


def _no_prior(path: Path | str) -> PriorError:
    return PriorError(f"{path}: not a prior .npz but another kind of NumPy file; give one that train-prior has written")
