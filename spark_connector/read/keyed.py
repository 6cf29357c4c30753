"""Reads messages by key or id, found in the brokers' key index (options ``messageKeys``, ``messageIds``)."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from rmqtools import MessageQueue, aio
from rmqtools.errors import ConfigError
from rmqtools.model.message import MessageExt
from spark_connector.options.batch_settings import LookUp
from spark_connector.options.read_settings import ReadOptions
from spark_connector.worker.clients import borrowed_client

if TYPE_CHECKING:
    import pyarrow as pa

_QUESTIONS_AT_ONCE: Final = 16
_ROWS_PER_BATCH: Final = 1000


@dataclass(frozen=True, slots=True)
class KeyTask:
    """The messages of one topic with some keys or ids. One task, so that a message with two is read once."""

    topic: str
    look_up: LookUp


def plan_key_tasks(look_up: LookUp, queues: Iterable[MessageQueue]) -> list[KeyTask]:
    """One task for every topic of the queues."""
    return [KeyTask(topic, look_up) for topic in sorted({queue.topic for queue in queues})]


def read_key_task(options: ReadOptions, task: KeyTask) -> Iterator["pa.RecordBatch"]:
    """Yield the messages of a task, by broker, queue and offset. Runs on the executor.

    Raises:
        ConfigError: there may be more messages with a key than a broker's index returns.
        UnsupportedError: the cluster is behind a proxy, which has no key index.
        CorruptBodyError: a body that cannot be read, and ``corruptBody`` is ``fail``.
    """
    from rmqtools.arrow import select_columns  # the driver's processes plan without it
    from rmqtools.arrow.rows_to_batch import rows_to_batch

    schema = select_columns(*options.columns)
    with borrowed_client(options.client) as client:
        found = client.run(_find(aio.Admin(client.asynchronous), options, task))
    for broker_name, messages in groupby(found, key=lambda message: message.broker_name):
        queue = MessageQueue(task.topic, broker_name, 0)
        whole = list(messages)
        for begin in range(0, len(whole), _ROWS_PER_BATCH):
            yield rows_to_batch(whole[begin : begin + _ROWS_PER_BATCH], queue, schema)


async def _find(admin: "aio.Admin", options: ReadOptions, task: KeyTask) -> list[MessageExt]:
    """All messages of a task, each once, by broker, queue and offset."""
    slots, look_up = asyncio.Semaphore(_QUESTIONS_AT_ONCE), task.look_up

    async def ask(option: str, key: str) -> list[MessageExt]:
        async with slots:
            try:
                return await admin.query_all_messages(
                    task.topic,
                    key,
                    unique=option == "messageIds",
                    begin_ms=look_up.begin_ms,
                    end_ms=look_up.end_ms,
                    corrupt_body=options.corrupt_body,
                )
            except ConfigError as error:
                raise ConfigError(f"option {option!r}: {error}") from None

    wanted = [
        *(("messageKeys", key) for key in look_up.keys),
        *(("messageIds", key) for key in look_up.ids),
    ]
    answers = await asyncio.gather(*(ask(*one) for one in wanted))
    by_place = {
        (message.broker_name, message.queue_id, message.queue_offset): message
        for messages in answers
        for message in messages
    }
    return [by_place[place] for place in sorted(by_place)]
