"""Sending for so many seconds, in each of our ways."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from typing import Any

from rmqtools import Message, Producer, ProducerConfig, aio
from rmqtools.errors import RocketMQError, SendManyError

_PROPERTIES = {"src": "bench"}
_MANY = 4096  # messages a call of send_many
_numbers = itertools.count()


def message(topic: str, body: bytes) -> Message:
    """A message as all programs send it: a tag, a key, one property."""
    return Message(topic, body, "TagA", (f"k{next(_numbers)}",), _PROPERTIES)


class Sends:
    """The producers of both faces, kept from round to round."""

    def __init__(self, name_server: str) -> None:
        self._config = ProducerConfig(name_server=name_server, group="bench_ours", send_timeout=20.0)
        self._producer: Producer | None = None
        self._runner = asyncio.Runner()
        self._aio: aio.Producer | None = None

    def run(self, work: dict[str, str]) -> dict[str, Any]:
        """One round: mode, topic, size, flight (in flight or in a batch), seconds."""
        body, flight = b"x" * int(work["size"]), int(work["flight"])
        mode, seconds = work["mode"], float(work["seconds"])
        if mode.startswith("aio"):
            return self._runner.run(self._run_aio(mode, work["topic"], body, flight, seconds))
        if self._producer is None:
            self._producer = Producer(self._config)
            self._producer.start()
        send = _BLOCKING[mode](self._producer, work["topic"], body, flight)
        stored = failed = 0
        began = time.perf_counter()
        while time.perf_counter() < began + seconds:
            one, not_one = send()
            stored, failed = stored + one, failed + not_one
        return {"count": stored, "seconds": time.perf_counter() - began, "failed": failed}

    def close(self) -> None:
        """Close the producers."""
        if self._producer is not None:
            self._producer.close()
        if self._aio is not None:
            self._runner.run(self._aio.close())
        self._runner.close()

    async def _run_aio(
        self, mode: str, topic: str, body: bytes, flight: int, seconds: float
    ) -> dict[str, Any]:
        if self._aio is None:
            self._aio = aio.Producer(self._config)
            await self._aio.start()
        count, lines = (flight, 1) if mode == "aio-batch" else (1, flight)
        send = _one_aio(self._aio, topic, body, count)
        failed = stored = 0
        began = time.perf_counter()

        async def line() -> None:
            nonlocal failed, stored
            while time.perf_counter() < began + seconds:
                try:
                    await send()
                    stored += count
                except RocketMQError:
                    failed += count

        await asyncio.gather(*(line() for _ in range(lines)))
        return {"count": stored, "seconds": time.perf_counter() - began, "failed": failed}


def _one_aio(producer: aio.Producer, topic: str, body: bytes, count: int) -> Callable[[], Awaitable[object]]:
    if count == 1:
        return lambda: producer.send(message(topic, body))
    return lambda: producer.send_batch([message(topic, body) for _ in range(count)])


def _sync(producer: Producer, topic: str, body: bytes, _: int) -> Callable[[], tuple[int, int]]:
    return lambda: _counted(1, lambda: producer.send(message(topic, body)))


def _batch(producer: Producer, topic: str, body: bytes, count: int) -> Callable[[], tuple[int, int]]:
    return lambda: _counted(count, lambda: producer.send_batch([message(topic, body) for _ in range(count)]))


def _many(producer: Producer, topic: str, body: bytes, _: int) -> Callable[[], tuple[int, int]]:
    return lambda: _counted(_MANY, lambda: producer.send_many([message(topic, body) for _ in range(_MANY)]))


def _counted(count: int, send: Callable[[], object]) -> tuple[int, int]:
    """Stored and failed messages of one call."""
    try:
        send()
    except SendManyError as error:
        failed = sum(isinstance(result, Exception) for result in error.results)
        return count - failed, failed
    except RocketMQError:
        return 0, count
    return count, 0


_BLOCKING = {"sync": _sync, "batch": _batch, "many": _many}
