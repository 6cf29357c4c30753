"""Place, duration and kinds of the cases."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.measure.faults.load import LoadConfig
from tools.measure.faults.run import Outcome, under_load
from tools.measure.faults.site import Site


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Place and duration of the cases.

    Attributes:
        site: the servers; whole before and after every case.
        folder: where the histories go.
        seconds: of a load.
        drain_seconds: that the readers have to reach the end of all queues when the load has ended.
        client: settings of all clients. Empty: the defaults, with which recovery is measured.
        producer: settings of the producers.
        reader: settings of the readers.
    """

    site: Site
    folder: Path
    seconds: float
    drain_seconds: float = 60.0
    client: Mapping[str, Any] = field(default_factory=dict)
    producer: Mapping[str, Any] = field(default_factory=dict)
    reader: Mapping[str, Any] = field(default_factory=dict)

    async def under_load(
        self,
        *,
        producer: Mapping[str, Any] | None = None,
        reader: Mapping[str, Any] | None = None,
        client: Mapping[str, Any] | None = None,
        body_bytes: int = 200,
        readers: int = 2,
        **steps: Any,
    ) -> Outcome:
        """:func:`tools.measure.faults.run.under_load` here, with these settings beside ours."""
        config = LoadConfig(
            client={**self.client, **(client or {})},
            producer={**self.producer, **(producer or {})},
            reader={**self.reader, **(reader or {})},
            body_bytes=body_bytes,
            readers=readers,
            drain_seconds=self.drain_seconds,
        )
        return await under_load(self.site, self.folder, seconds=self.seconds, config=config, **steps)


@dataclass(frozen=True)
class Case:
    """A case by its number in README.md."""

    number: int
    title: str
    run: Callable[[Bench], Coroutine[Any, Any, Outcome]]
