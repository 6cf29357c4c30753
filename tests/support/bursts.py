"""The bursts that a test sees."""

import pytest

from rmqtools.engine.consumer import burst, workers
from rmqtools.engine.consumer.burst import Burst
from rmqtools.engine.consumer.burst_sources import Source
from tests.support.patience import PATIENCE


def note_sources(monkeypatch: pytest.MonkeyPatch) -> list[Source]:
    """Return a list that gets the source of each queue that a burst fetches.

    Calls count as short, however seldom a busy machine lets their thread run: it would end all bursts.
    """
    for module in (burst, workers):
        monkeypatch.setattr(module, "LONG_CALL", PATIENCE)
    sources: list[Source] = []
    add = Burst.add
    monkeypatch.setattr(Burst, "add", lambda self, source: (sources.append(source), add(self, source))[1])
    return sources
