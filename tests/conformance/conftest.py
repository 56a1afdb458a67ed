"""Fixtures of the conformance suite: every contract runs over every engine in `subjects.SUBJECTS`."""

from __future__ import annotations

import pytest
from subjects import SUBJECTS, Subject

from mocap2ctrl.character.model import Character
from mocap2ctrl.simulation.engine import Engine


@pytest.fixture(params=SUBJECTS, ids=lambda subject: subject.name, scope="session")
def subject(request: pytest.FixtureRequest) -> Subject:
    return request.param


@pytest.fixture(scope="session")
def subject_engine(subject: Subject, character: Character) -> Engine:
    """The engine with servos, at the default step, shared by the contracts."""
    return subject.make(character)


@pytest.fixture(scope="session")
def plain_engine(subject: Subject, character: Character) -> Engine:
    """The same without servos: torques only."""
    return subject.make(character, servo=False)
