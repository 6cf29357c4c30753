"""Many messages: packed into batches, several batches on the wire at once, one result per message."""

import asyncio
from collections.abc import Sequence

from rmqtools.config import ProducerConfig
from rmqtools.engine.encode_send import Encoder, Outgoing
from rmqtools.engine.send import QueueChoice, Sender
from rmqtools.errors import RocketMQError, SendError, SendManyError
from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import SendResult
from rmqtools.policy.packing import pack

Results = dict[int, SendResult | SendError]


class ManySender:
    """Places many messages. What is in flight is bounded: ``max_in_flight`` requests of a batch each."""

    def __init__(self, sender: Sender, encoder: Encoder, config: ProducerConfig) -> None:
        self._sender = sender
        self._encoder = encoder
        self._config = config

    async def send_many(self, messages: Sequence[Message], timeout: float | None) -> list[SendResult]:
        """Place messages of any topics, each topic's batches in turn over its queues."""
        for topic in {message.topic for message in messages}:
            await self._sender.publish_info(topic)
        results: Results = {}
        free = asyncio.Semaphore(self._config.max_in_flight)
        busy: dict[MessageQueue, asyncio.Lock] = {}
        async with asyncio.TaskGroup() as group:
            for numbers in pack(messages, self._config.max_batch_bytes):
                await free.acquire()
                outgoing = self._encode([messages[number] for number in numbers])
                try:
                    queue = await self._sender.next_queue(outgoing.topic)
                except RocketMQError as error:  # the last queue has left the route since the check above
                    results.update(dict.fromkeys(numbers, SendError(str(error))))
                    free.release()
                    continue
                turn = busy.setdefault(queue, asyncio.Lock())
                task = group.create_task(self._place(outgoing, queue, turn, numbers, results, timeout))
                task.add_done_callback(lambda _: free.release())
        return _all_or_error([results[number] for number in range(len(messages))])

    async def send_batch(
        self, messages: Sequence[Message], queue: MessageQueue | None, timeout: float | None
    ) -> list[SendResult]:
        """Place messages of one topic, as one request unless they are larger than ``max_message_bytes``."""
        results: list[SendResult] = []
        for numbers in pack(messages, self._config.max_message_bytes):
            outgoing = self._encoder.encode_batch([messages[number] for number in numbers])
            try:
                results += await self._sender.place(outgoing, choice=QueueChoice(queue), timeout=timeout)
            except RocketMQError as error:
                if not results:
                    raise
                failed = error if isinstance(error, SendError) else SendError(str(error))
                untried = SendError("not tried: a request before it failed")
                left = len(messages) - len(results) - len(numbers)
                return _all_or_error([*results, *[failed] * len(numbers), *[untried] * left])
        return results

    def _encode(self, messages: Sequence[Message]) -> Outgoing:
        return (
            self._encoder.encode(messages[0]) if len(messages) == 1 else self._encoder.encode_batch(messages)
        )

    async def _place(
        self,
        outgoing: Outgoing,
        queue: MessageQueue,
        turn: asyncio.Lock,
        numbers: Sequence[int],
        results: Results,
        timeout: float | None,
    ) -> None:
        """Place a batch after those before it on its queue; file what became of each message.

        One batch per queue is on the wire at a time: brokers store pipelined ones in any order.
        """
        try:
            async with turn:
                placed = await self._sender.place(outgoing, first=queue, timeout=timeout)
            results.update(zip(numbers, placed, strict=True))
        except SendError as error:
            results.update(dict.fromkeys(numbers, error))
        except RocketMQError as error:  # the client was closed, or the route has gone
            results.update(dict.fromkeys(numbers, SendError(str(error))))


def _all_or_error(results: Sequence[SendResult | SendError]) -> list[SendResult]:
    stored = [result for result in results if isinstance(result, SendResult)]
    if len(stored) == len(results):
        return stored
    first = next(result for result in results if isinstance(result, SendError))
    text = f"{len(results) - len(stored)} of {len(results)} messages could not be placed; the first: {first}"
    raise SendManyError(text, results) from first
