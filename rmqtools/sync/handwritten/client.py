"""The base class of the blocking client: how code of the caller runs on the loop thread."""

from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

from rmqtools import aio
from rmqtools.config import ClientConfig
from rmqtools.errors import ClientStateError
from rmqtools.sync.lifecycle import Blocking

T = TypeVar("T")


class BlockingClient(Blocking):
    """A blocking client without the methods of one line."""

    def __init__(self, config: ClientConfig) -> None:
        self.asynchronous = aio.Client(config)
        super().__init__(self.asynchronous)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine that uses :attr:`asynchronous` on the loop thread, and wait for it."""
        try:
            return self._bridge.run(lambda: coroutine)
        except ClientStateError:
            coroutine.close()  # it may not have begun
            raise

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Walk an asynchronous iterator that uses :attr:`asynchronous`.

        It runs on the loop thread and is one item ahead of the caller. Its work for each item, such as
        decoding, needs no change of threads, but delays everything else on that loop.
        """
        return self._bridge.iterate(items)
