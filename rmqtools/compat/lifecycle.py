"""Starts and stops the clients of the moved API: once each, as context managers too."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from rmqtools.compat.settings import Configurable


class _Engine(Protocol):
    def start(self) -> None: ...

    def close(self) -> None: ...


E = TypeVar("E", bound=_Engine)


class Startable(Configurable, ABC, Generic[E]):
    """A client that runs on one of our clients from its start to its shutdown."""

    _engine: E | None = None

    @abstractmethod
    def start(self) -> None:
        """Start the client. A second call does nothing."""

    def shutdown(self) -> None:
        """Stop the client; a consumer leaves its group. May be called repeatedly, also from a callback."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _run(self, engine: E) -> None:
        """Start our client. It is known before it starts: a callback may shut it down meanwhile."""
        self._engine = engine
        try:
            engine.start()
        except BaseException:
            self._engine = None
            raise
        self._is_new = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
