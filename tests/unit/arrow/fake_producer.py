"""A producer with scripted answers to parcels."""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from rmqtools import MessageQueue, Outcome, ProducerConfig, SendAttempt, SendStatus
from rmqtools.errors import SendError
from rmqtools.model.parcel import MsgIds, Parcel, ParcelResult
from rmqtools.protocol.messages.batch import BatchMessage, decode_batch
from tests.support.fake import Fake

QUEUES = [MessageQueue("T", broker, number) for broker in ("a", "b") for number in range(2)]
STORED = SendAttempt(QUEUES[0], "127.0.0.1:10911", 0.1, Outcome.STORED)
REFUSED = SendAttempt(QUEUES[0], "127.0.0.1:10911", 0.1, Outcome.REFUSED, "busy")
UNANSWERED = SendAttempt(QUEUES[0], "127.0.0.1:10911", 0.1, Outcome.UNKNOWN, "timeout")

Answer = ParcelResult | SendError


def result(
    *attempts: SendAttempt, status: SendStatus = SendStatus.SEND_OK, offset: int = 0, count: int = 1
) -> ParcelResult:
    return ParcelResult(
        status=status, queue=QUEUES[0], queue_offset=offset, count=count, attempts=attempts or (STORED,)
    )


class FakeProducer(Fake):
    """``sent`` holds the parcels of every call."""

    def __init__(self, *answers: Sequence[Answer], **settings: Any) -> None:
        self.config = ProducerConfig(name_server="127.0.0.1:9876", **settings)
        self.answers = list(answers)
        self.sent: list[list[Parcel]] = []
        self.ids = 0
        self.queues = QUEUES
        self.line = object()
        self._parcels = self

    def parcel_line(self) -> object:
        return self.line

    def send_parcels_async(self, parcels: Sequence[Parcel], *, line: object) -> Future[Sequence[Answer]]:
        assert line is self.line
        self.sent.append(list(parcels))
        future: Future[Sequence[Answer]] = Future()
        future.set_result(
            self.answers.pop(0) if self.answers else [result(count=len(parcel)) for parcel in parcels]
        )
        return future

    def reserve_msg_ids(self, count: int) -> MsgIds:
        self.ids += count
        return MsgIds("7F000001000500000007" + "0747B760", self.ids - count, count)

    def fetch_publish_queues(self, topic: str) -> list[MessageQueue]:
        return [MessageQueue(topic, queue.broker_name, queue.queue_id) for queue in self.queues]


def messages_of(parcel: Parcel) -> list[BatchMessage]:
    return decode_batch(bytes(parcel.body))


def bodies_of(parcel: Parcel) -> list[bytes]:
    if parcel.message is not None:
        return [parcel.message.body]
    return [message.body for message in messages_of(parcel)]
