"""What a table's fits are set to: a budget, and single settings of it."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from mocap2ctrl.errors import ConfigError
from mocap2ctrl.fit.config import FitConfig, budget, config_from_mapping


def config_of(options: argparse.Namespace) -> FitConfig:
    """The configuration of a table's fits.

    Raises:
        ConfigError: a setting that there is not, or with a value that is not allowed.
    """
    config = budget("quick" if options.quick else options.budget)
    changes = {}
    for change in options.set or ():
        name, sign, value = change.partition("=")
        if not sign:
            raise ConfigError(f"--set {change}: expected NAME=VALUE, for example descents=0")
        changes[name] = value == "true" if value in ("true", "false") else value
    return config_from_mapping({**asdict(config), **changes}) if changes else config


def named(name: str, options: argparse.Namespace) -> str:
    """A case's name in a table, with what was set beside the budget."""
    return f"{name} ({', '.join(options.set)})" if options.set else name
