"""Keeps a command within a number of messages a second (``--rate``)."""

from threading import Event
from typing import Annotated

import typer

from rmqtools.clock import SYSTEM_CLOCK

Rate = Annotated[
    float | None,
    typer.Option(min=0.01, max=1e9, metavar="NUMBER", help="Maximum number of messages a second."),
]


class Pace:
    """Waits before messages are sent. ``rate``: messages a second from now on; None: without a bound."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._start = SYSTEM_CLOCK.monotonic()

    def wait(self, sent: int) -> None:
        """Wait until more than ``sent`` messages may have been sent."""
        if self._rate and (seconds := self._start + sent / self._rate - SYSTEM_CLOCK.monotonic()) > 0:
            Event().wait(seconds)
