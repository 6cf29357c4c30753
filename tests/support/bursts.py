"""Records the bursts of a test."""

from typing import Any

import pytest

from rmqtools.engine.consumer import burst, workers
from rmqtools.engine.consumer.burst import Burst
from rmqtools.engine.consumer.burst_sources import Source
from tests.support.patience import PATIENCE


def note_sources(monkeypatch: pytest.MonkeyPatch) -> list[Source[Any]]:
    """Return a list that gets the source of each queue that a burst fetches.

    All calls count as short: a burst ends after long ones, and on a busy machine many are long.
    """
    for module in (burst, workers):
        monkeypatch.setattr(module, "LONG_CALL", PATIENCE)
    sources: list[Source[Any]] = []
    add = Burst.add

    def note(self: Burst[Any], source: Source[Any]) -> None:
        sources.append(source)
        add(self, source)

    monkeypatch.setattr(Burst, "add", note)
    return sources
