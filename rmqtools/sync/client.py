"""Blocking face of :mod:`rmqtools.aio.client`."""

from collections.abc import AsyncIterator, Collection, Coroutine, Iterator
from typing import Any, TypeVar

from rmqtools import aio
from rmqtools.config import ClientConfig
from rmqtools.model.block import CorruptBody, MessageBlock
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import QueueRange
from rmqtools.sync.lifecycle import Blocking

T = TypeVar("T")


class Client(Blocking):
    """Blocking face of :class:`rmqtools.aio.Client`; safe to share between threads."""

    def __init__(self, config: ClientConfig) -> None:
        self.asynchronous = aio.Client(config)
        super().__init__(self.asynchronous)

    @property
    def client_id(self) -> str:
        """See :attr:`rmqtools.aio.Client.client_id`."""
        return self.asynchronous.client_id

    def read_blocks(
        self,
        range_: QueueRange,
        *,
        max_messages: int = 1024,
        max_bytes: int = 2 * 1024 * 1024,
        tags: Collection[str] = (),
        sql: str | None = None,
        fail_on_data_loss: bool = True,
    ) -> Iterator[MessageBlock]:
        """See :meth:`rmqtools.aio.Client.read_blocks`."""
        blocks = self.asynchronous.read_blocks(
            range_,
            max_messages=max_messages,
            max_bytes=max_bytes,
            tags=tags,
            sql=sql,
            fail_on_data_loss=fail_on_data_loss,
        )
        return self.iterate(blocks)

    def read_messages(
        self,
        range_: QueueRange,
        *,
        max_messages: int = 256,
        max_bytes: int = 1024 * 1024,
        tags: Collection[str] = (),
        sql: str | None = None,
        fail_on_data_loss: bool = True,
        corrupt_body: CorruptBody = "fail",
    ) -> Iterator[list[MessageExt]]:
        """See :meth:`rmqtools.aio.Client.read_messages`."""
        found = self.asynchronous.read_messages(
            range_,
            max_messages=max_messages,
            max_bytes=max_bytes,
            tags=tags,
            sql=sql,
            fail_on_data_loss=fail_on_data_loss,
            corrupt_body=corrupt_body,
        )
        return self.iterate(found)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine that uses :attr:`asynchronous` on the loop thread, and wait for it."""
        return self._bridge.run(coroutine)

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Walk an asynchronous iterator that uses :attr:`asynchronous`.

        It runs on the loop thread and is one item ahead of the caller. Its work for each item, such as
        decoding, needs no change of threads, but delays everything else on that loop.
        """
        return self._bridge.iterate(items)
