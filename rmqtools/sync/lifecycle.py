"""Start, close and the ``with`` block, alike for every blocking class."""

import warnings
from types import TracebackType
from typing import Self

from rmqtools.aio.lifecycle import Asynchronous
from rmqtools.engine.loop import Bridge


class Blocking:
    """Runs the life of an asynchronous object from blocking code."""

    def __init__(self, asynchronous: Asynchronous) -> None:
        self._bridge = Bridge()
        self._asynchronous = asynchronous
        self._open = False

    def start(self) -> None:
        """Make the object usable."""
        self._bridge.run(self._asynchronous.start())
        self._open = True

    def close(self) -> None:
        """Close it, and wait until it is. A second call does nothing."""
        if self._open:
            self._open = False
            self._bridge.run(self._asynchronous.close())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_open", False) and self._bridge.is_of_this_process():
            warnings.warn(
                f"unclosed {type(self).__name__}: call close()", ResourceWarning, source=self, stacklevel=2
            )
