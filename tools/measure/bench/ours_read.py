"""Reading a whole topic: as Arrow batches, as messages, or only counted."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import pyarrow as pa

from rmqtools import Admin, Client, ClientConfig, MessageExt, QueueRange, aio
from rmqtools.arrow import MESSAGE_SCHEMA, read_range, select_columns
from tools.measure.bench.count_only import count_messages

Look = Callable[[Sequence[MessageExt]], int]

_SCHEMAS = {
    "nine": select_columns(
        "topic",
        "queueId",
        "queueOffset",
        "body",
        "tags",
        "keys",
        "properties",
        "bornTimestamp",
        "storeTimestamp",
    ),
    "all": MESSAGE_SCHEMA,
}
_clients: dict[str, Client] = {}  # of this process, by name server


class Readers:
    """Readers on this process's client, and on those of other processes."""

    def __init__(self, name_server: str) -> None:
        self._name_server = name_server
        self._admin: Admin | None = None
        self._pool: ProcessPoolExecutor | None = None

    def arrow(self, work: dict[str, str]) -> dict[str, Any]:
        """Nine columns or all, by ``threads`` in each of ``processes``."""
        shares = _shares(self._ranges(work["topic"]), int(work["processes"]))
        threads, schema = int(work["threads"]), _SCHEMAS[work["columns"]]
        if len(shares) == 1:
            return _timed(lambda: _read_arrow(self._name_server, shares[0], threads, schema))
        if self._pool is None:
            self._pool = ProcessPoolExecutor(len(shares), get_context("spawn"))
        submit = self._pool.submit
        futures = (submit(_read_arrow, self._name_server, share, threads, schema) for share in shares)
        return _timed(lambda: sum(future.result() for future in list(futures)))

    def objects(self, work: dict[str, str]) -> dict[str, Any]:
        """MessageExt objects: ``kind`` says what is looked at, see ``_LOOKS``."""
        ranges, look = self._ranges(work["topic"]), _LOOKS[work["kind"]]
        if work["face"] == "aio":
            return asyncio.run(_objects_aio(self._name_server, ranges, look))
        return _timed(lambda: _objects(self._name_server, ranges, look))

    def count(self, work: dict[str, str]) -> dict[str, Any]:
        """Pull without looking at the messages: what the broker can give."""
        ranges = self._ranges(work["topic"])
        assert self._admin is not None
        addr = self._admin.fetch_route(work["topic"]).broker_datas[0].broker_addrs[0]
        return _timed(lambda: count_messages(addr, ranges))

    def close(self) -> None:
        """Close what is open."""
        if self._pool is not None:
            self._pool.shutdown()
        if self._admin is not None:
            self._admin.close()
        for client in _clients.values():
            client.close()

    def _ranges(self, topic: str) -> list[QueueRange]:
        if self._admin is None:
            self._admin = Admin(ClientConfig(name_server=self._name_server))
            self._admin.start()
        queues = self._admin.fetch_subscribe_queues(topic)
        return [QueueRange(queue, 0, self._admin.max_offset(queue)) for queue in queues]


def _client(name_server: str) -> Client:
    client = _clients.get(name_server)
    if client is None:
        client = _clients[name_server] = Client(ClientConfig(name_server=name_server))
        client.start()
    return client


def _read_arrow(name_server: str, ranges: Sequence[QueueRange], threads: int, schema: pa.Schema) -> int:
    client = _client(name_server)

    def read(range_: QueueRange) -> int:
        return sum(batch.num_rows for batch in read_range(client, range_, schema=schema))

    if threads == 1:
        return sum(map(read, ranges))
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(read, ranges))


def _objects(name_server: str, ranges: Sequence[QueueRange], look: Look) -> int:
    client = _client(name_server)
    return sum(look(messages) for range_ in ranges for messages in client.read_messages(range_))


async def _objects_aio(name_server: str, ranges: Sequence[QueueRange], look: Look) -> dict[str, Any]:
    async with aio.Client(ClientConfig(name_server=name_server)) as client:
        count, began = 0, time.perf_counter()
        for range_ in ranges:
            async for messages in client.read_messages(range_):
                count += look(messages)
        return {"count": count, "seconds": time.perf_counter() - began}


def _look_at_bodies(messages: Sequence[MessageExt]) -> int:
    return sum(len(message.body) > 0 for message in messages)


def _look_at_properties(messages: Sequence[MessageExt]) -> int:
    return sum(bool(message.body and message.properties) for message in messages)


def _look_at_all(messages: Sequence[MessageExt]) -> int:
    return sum(
        bool(
            message.body
            and message.properties
            and message.born_host
            and message.store_host
            and message.offset_msg_id
        )
        for message in messages
    )


_LOOKS: dict[str, Look] = {
    "lazy": _look_at_bodies,
    "properties": _look_at_properties,
    "all": _look_at_all,  # properties, hosts and ids: what is not a number
}


def _shares(ranges: Sequence[QueueRange], count: int) -> list[list[QueueRange]]:
    return [list(ranges[number::count]) for number in range(count)]


def _timed(read: Callable[[], int]) -> dict[str, Any]:
    began = time.perf_counter()
    count = read()
    return {"count": count, "seconds": time.perf_counter() - began}
