"""Sending for so many seconds, in each of our ways."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from rmqtools import Message, Producer, ProducerConfig, aio
from rmqtools.arrow import SendReport, send_batches
from rmqtools.arrow.queue_choice import RowQueues
from rmqtools.arrow.rows import rows_of
from rmqtools.arrow.rows_to_requests import encode_batches
from rmqtools.errors import RocketMQError, SendManyError
from tools.measure.bench.broker import record_batch
from tools.measure.bench.ours_push import runner_on

Send: TypeAlias = Callable[[], tuple[int, int]]
"""Sends some; how many are stored, and how many not."""

_PROPERTIES = {"src": "bench"}
_MANY = 4096  # messages a call of send_many
_ROWS, _BATCHES = 10_000, 16  # a batch of send_batches, as Spark gives them, and a call: a small Spark task
_numbers = itertools.count()


def message(topic: str, body: bytes) -> Message:
    """Return a message as all programs send it: a tag, a key, one property."""
    return Message(topic, body, "TagA", (f"k{next(_numbers)}",), _PROPERTIES)


class Sends:
    """The producers of both faces, kept from round to round."""

    def __init__(self, name_server: str) -> None:
        self._config = ProducerConfig(
            name_server=name_server, group="bench_ours", send_timeout=20.0, compression="none"
        )
        self._producers: dict[int, Producer] = {}  # by the bytes of a request
        self._runners: dict[str, asyncio.Runner] = {}  # by the loop
        self._aio: dict[tuple[str, float], aio.Producer] = {}  # by the loop and linger

    def run(self, work: dict[str, str]) -> dict[str, Any]:
        """One round: mode, topic, size, flight, seconds, and perhaps linger and batch_bytes.

        ``flight``: threads, messages in flight or messages in a batch; 0: as many as are let.
        """
        body, flight = b"x" * int(work["size"]), int(work["flight"])
        mode, seconds = work["mode"], float(work["seconds"])
        if mode.startswith("aio"):
            config = replace(
                self._config,
                linger=float(work.get("linger", 0.0)),
                batch_bytes=int(work.get("batch_bytes", self._config.batch_bytes)),
            )
            loop = work.get("loop", "")
            if loop not in self._runners:
                self._runners[loop] = runner_on(loop)
            return self._runners[loop].run(
                self._run_aio(loop, mode, work["topic"], body, flight, seconds, config)
            )
        send = self._blocking(mode, work["topic"], body, flight)
        began = time.perf_counter()
        end = began + seconds
        with ThreadPoolExecutor(flight if mode == "sync" else 1) as threads:
            counts = list(threads.map(lambda _: _until(end, send), range(threads._max_workers)))
        stored, failed = (sum(column) for column in zip(*counts, strict=True))
        return {"count": stored, "seconds": time.perf_counter() - began, "failed": failed}

    def close(self) -> None:
        """Close the producers."""
        for blocking in self._producers.values():
            blocking.close()
        for (loop, _), producer in self._aio.items():
            self._runners[loop].run(producer.close())
        for runner in self._runners.values():
            runner.close()

    def _blocking(self, mode: str, topic: str, body: bytes, flight: int) -> Send:
        producer = self._producer(self._config)
        if mode != "columns":
            return _BLOCKING[mode](producer, topic, body, flight)
        if flight:
            request_bytes = _encoded_bytes(producer, record_batch(flight, len(body)), topic)
            producer = self._producer(replace(self._config, max_batch_bytes=request_bytes))
        rows = record_batch(_ROWS, len(body))
        return lambda: _of_columns(producer, rows, topic)

    def _producer(self, config: ProducerConfig) -> Producer:
        producer = self._producers.get(config.max_batch_bytes)
        if producer is None:
            producer = self._producers[config.max_batch_bytes] = Producer(config)
            producer.start()
        return producer

    async def _run_aio(
        self,
        loop: str,
        mode: str,
        topic: str,
        body: bytes,
        flight: int,
        seconds: float,
        config: ProducerConfig,
    ) -> dict[str, Any]:
        producer = self._aio.get((loop, config.linger))
        if producer is None:
            producer = self._aio[loop, config.linger] = aio.Producer(config)
            await producer.start()
        count, lines = (flight, 1) if mode == "aio-batch" else (1, flight)
        send = _one_aio(producer, topic, body, count)
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


def _until(end: float, send: Send) -> tuple[int, int]:
    stored = failed = 0
    while time.perf_counter() < end:
        one, not_one = send()
        stored, failed = stored + one, failed + not_one
    return stored, failed


def _one_aio(producer: aio.Producer, topic: str, body: bytes, count: int) -> Callable[[], Awaitable[object]]:
    if count == 1:
        return lambda: producer.send(message(topic, body))
    return lambda: producer.send_batch([message(topic, body) for _ in range(count)])


def _sync(producer: Producer, topic: str, body: bytes, _: int) -> Send:
    return lambda: _counted(1, lambda: producer.send(message(topic, body)))


def _batch(producer: Producer, topic: str, body: bytes, count: int) -> Send:
    return lambda: _counted(count, lambda: producer.send_batch([message(topic, body) for _ in range(count)]))


def _many(producer: Producer, topic: str, body: bytes, _: int) -> Send:
    return lambda: _counted(_MANY, lambda: producer.send_many([message(topic, body) for _ in range(_MANY)]))


def _encoded_bytes(producer: Producer, rows: pa.RecordBatch, topic: str) -> int:
    return sum(
        batch.nbytes for batch in encode_batches(producer, rows_of(rows, topic=topic), RowQueues(None))
    )


def _of_columns(producer: Producer, rows: pa.RecordBatch, topic: str) -> tuple[int, int]:
    """Rows that lie ready in columns; a request has what fits into the producer's ``max_batch_bytes``."""
    report = SendReport()
    with contextlib.suppress(RocketMQError):  # counted
        send_batches(producer, [rows] * _BATCHES, topic=topic, report=report)
    return report.acked, report.failed


def _counted(count: int, send: Callable[[], object]) -> tuple[int, int]:
    """Count the stored and failed messages of one call."""
    try:
        send()
    except SendManyError as error:
        failed = sum(isinstance(result, Exception) for result in error.results)
        return count - failed, failed
    except RocketMQError:
        return 0, count
    return count, 0


_BLOCKING = {"sync": _sync, "batch": _batch, "many": _many}
