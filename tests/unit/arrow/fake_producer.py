"""A producer with scripted answers to batches."""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from rmqtools import MessageQueue, Outcome, ProducerConfig, SendAttempt, SendStatus
from rmqtools.errors import SendError
from rmqtools.model.encoded_batch import EncodedBatch, MsgIds, StoredBatch
from rmqtools.protocol.messages.batch import BatchMessage, decode_batch
from tests.support.fake import Fake

QUEUES = [MessageQueue("T", broker, number) for broker in ("a", "b") for number in range(2)]
STORED = SendAttempt(QUEUES[0], "127.0.0.1:10911", 0.1, Outcome.STORED)
REFUSED = SendAttempt(QUEUES[0], "127.0.0.1:10911", 0.1, Outcome.REFUSED, "busy")
UNANSWERED = SendAttempt(QUEUES[0], "127.0.0.1:10911", 0.1, Outcome.UNKNOWN, "timeout")

Answer = StoredBatch | SendError


def result(
    *attempts: SendAttempt, status: SendStatus = SendStatus.SEND_OK, offset: int = 0, count: int = 1
) -> StoredBatch:
    return StoredBatch(
        status=status, queue=QUEUES[0], queue_offset=offset, count=count, attempts=attempts or (STORED,)
    )


class FakeProducer(Fake):
    """``sent`` holds the batches of every call."""

    def __init__(self, *answers: Sequence[Answer], **settings: Any) -> None:
        self.config = ProducerConfig(name_server="127.0.0.1:9876", **settings)
        self.answers = list(answers)
        self.sent: list[list[EncodedBatch]] = []
        self.ids = 0
        self.queues = QUEUES
        self.series = object()
        self._encoded_sends = self

    def new_series(self) -> object:
        return self.series

    def send_encoded_async(
        self, batches: Sequence[EncodedBatch], *, series: object
    ) -> Future[Sequence[Answer]]:
        assert series is self.series
        self.sent.append(list(batches))
        future: Future[Sequence[Answer]] = Future()
        future.set_result(
            self.answers.pop(0) if self.answers else [result(count=len(batch)) for batch in batches]
        )
        return future

    def reserve_msg_ids(self, count: int) -> MsgIds:
        self.ids += count
        return MsgIds("7F000001000500000007" + "0747B760", self.ids - count, count)

    def fetch_publish_queues(self, topic: str) -> list[MessageQueue]:
        return [MessageQueue(topic, queue.broker_name, queue.queue_id) for queue in self.queues]


def messages_of(batch: EncodedBatch) -> list[BatchMessage]:
    return decode_batch(bytes(batch.body))


def bodies_of(batch: EncodedBatch) -> list[bytes]:
    if batch.message is not None:
        return [batch.message.body]
    return [message.body for message in messages_of(batch)]
