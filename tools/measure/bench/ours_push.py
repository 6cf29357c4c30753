"""A push consumer: how fast it goes through a backlog, and how long a message takes to reach its listener."""

import asyncio
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import uvloop

from rmqtools import (
    ConsumeFromWhere,
    Message,
    MessageExt,
    Producer,
    ProducerConfig,
    PushConsumer,
    PushConsumerConfig,
    aio,
)

_PATIENCE = 60.0
_SENT_AT = struct.Struct(">q")
_WARM = 200  # messages before those that count


def runner_on(loop: str) -> asyncio.Runner:
    """Return what runs coroutines: asyncio's loop, or that of ``uvloop``."""
    return asyncio.Runner(loop_factory=uvloop.new_event_loop if loop == "uvloop" else None)


class Arrivals:
    """Counts messages, and when the first of ``total`` came (``whole``: when this was made) and the last."""

    def __init__(self, total: int, *, whole: bool = False) -> None:
        self._total = total
        self._count = 0
        self._first = time.perf_counter() if whole else 0.0
        self._last = 0.0

    def note(self, messages: Sequence[MessageExt]) -> bool:
        """Return whether all are there. Not safe on several threads at once."""
        if not messages:
            return False
        self._last = time.perf_counter()
        self._first = self._first or self._last
        self._count += len(messages)
        return self._count >= self._total

    def listener(self, all_came: Callable[[], object]) -> Callable[[Sequence[MessageExt], object], None]:
        """As :meth:`note`, safe on several threads. One function: the Java side's is compiled to one."""
        lock, clock, total = threading.Lock(), time.perf_counter, self._total

        def listen(messages: Sequence[MessageExt], _: object) -> None:
            with lock:
                self._last = now = clock()
                if not self._count:
                    self._first = self._first or now
                self._count = count = self._count + len(messages)
            if count >= total:
                all_came()

        return listen

    def coroutine_listener(
        self, all_came: Callable[[], object]
    ) -> Callable[[Sequence[MessageExt], object], Coroutine[Any, Any, None]]:
        """Return the listener as a coroutine function."""
        clock, total = time.perf_counter, self._total

        async def listen(messages: Sequence[MessageExt], _: object) -> None:
            self._last = now = clock()
            if not self._count:
                self._first = self._first or now
            self._count = count = self._count + len(messages)
            if count >= total:
                all_came()

        return listen

    def result(self) -> dict[str, Any]:
        """As a round is reported."""
        return {"count": self._count, "seconds": self._last - self._first}


def push(name_server: str, work: dict[str, str]) -> dict[str, Any]:
    """From the first message that a listener gets to the last; a group of its own each time.

    With ``whole`` the start of the consumer counts, too.
    """
    arrivals = Arrivals(int(work["total"]), whole="whole" in work)
    done = threading.Event()
    consumer = _consumer(name_server, work, ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    consumer.subscribe(work["topic"], arrivals.listener(done.set))
    with consumer:
        done.wait(_PATIENCE)
    return arrivals.result()


def push_aio(name_server: str, work: dict[str, str]) -> dict[str, Any]:
    """Consume on an event loop, with a coroutine for a listener."""
    with runner_on(work.get("loop", "")) as runner:
        return runner.run(_push_aio(name_server, work))


async def _push_aio(name_server: str, work: dict[str, str]) -> dict[str, Any]:
    arrivals, done = Arrivals(int(work["total"])), asyncio.Event()
    consumer = aio.PushConsumer(_config(name_server, work, ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET))
    consumer.subscribe(work["topic"], arrivals.coroutine_listener(done.set))
    async with consumer, asyncio.timeout(_PATIENCE):
        await done.wait()
    return arrivals.result()


def latency(name_server: str, work: dict[str, str]) -> dict[str, Any]:
    """Milliseconds from the call of send to the listener, at a steady rate."""
    total, interval = int(work["total"]), 1 / float(work["rate"])
    times: dict[str | None, list[int]] = defaultdict(
        list
    )  # by tag: a new group also gets earlier rounds' messages
    taken, warm = times[work["group"]], times[work["group"] + "-warm"]

    def listen(messages: Sequence[MessageExt], _: object) -> None:
        now = time.perf_counter_ns()
        for message in messages:
            times[message.tags].append(now - _SENT_AT.unpack_from(message.body)[0])

    consumer = _consumer(name_server, work, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET)
    producer = Producer(ProducerConfig(name_server=name_server, group="bench_ours_latency"))
    consumer.subscribe(work["topic"], listen)
    with consumer, producer:
        sent = 0
        while sent < _WARM or sent - len(warm) > 2:  # until the queues are shared out and all of them flow
            producer.send(Message(work["topic"], _body(), work["group"] + "-warm"))
            sent += 1
            time.sleep(0.005)
        began = time.perf_counter()
        for number in range(total):
            time.sleep(max(0.0, began + number * interval - time.perf_counter()))
            producer.send(Message(work["topic"], _body(), work["group"]))
        deadline = time.perf_counter() + _PATIENCE
        while len(taken) < total and time.perf_counter() < deadline:
            time.sleep(0.01)
        seconds = time.perf_counter() - began
    taken.sort()
    return {
        "count": len(taken),
        "seconds": seconds,
        "p50_ms": taken[len(taken) // 2] / 1e6,
        "p99_ms": taken[len(taken) * 99 // 100] / 1e6,
    }


def _body() -> bytes:
    return _SENT_AT.pack(time.perf_counter_ns()).ljust(100, b"x")


def _consumer(name_server: str, work: dict[str, str], consume_from: ConsumeFromWhere) -> PushConsumer:
    return PushConsumer(_config(name_server, work, consume_from))


def _config(name_server: str, work: dict[str, str], consume_from: ConsumeFromWhere) -> PushConsumerConfig:
    return PushConsumerConfig(
        name_server=name_server,
        group=work["group"],
        instance_name=work["group"],
        consume_from=consume_from,
        consume_threads=int(work["threads"]),
        consume_message_batch_max_size=int(work["batch"]),
        orderly=work.get("kind") == "orderly",
        client_rebalance=work.get("kind") != "pop",
    )
