"""Parses a broker's answer to a send, and makes the error of a failed send.

- A broker answers a batch with one offset id per message, joined by commas, and the offset of the first
  message.
- The answer to a message with a delay names the queue that was asked for, but the offset in the schedule
  topic. It says nothing about the queue's end (``SendReport.end_offsets``).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from rmqtools.compiled import twins
from rmqtools.engine.producer.encode_send import Outgoing
from rmqtools.errors import BrokerError, ProtocolError, SendError, UnknownOutcomeError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.encoded_batch import MsgIds, StoredBatch
from rmqtools.model.frozen import maker_of
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import Outcome, SendAttempt, SendResult, SendStatus
from rmqtools.number_of import number_of
from rmqtools.policy.endpoint.topic_types import refused_type_hint
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.send import SendMessageResponseHeader
from rmqtools.protocol.wire.command import RemotingCommand

STATUS_BY_CODE: Final[dict[int, SendStatus]] = {
    ResponseCode.SUCCESS: SendStatus.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}

_TOO_LARGE: Final = re.compile("message (body )?size exceeded")  # MessageExtEncoder.encode, before it stores

_send_result = maker_of(SendResult)
if twins is not None and not twins.bind_send_result(SendResult):
    twins = None  # type: ignore[assignment]  # this is a reload: they make the first SendResult


@dataclass(frozen=True, slots=True)
class Placed:
    """A request that a broker has stored: one message, or all messages of a batch side by side."""

    status: SendStatus
    queue: MessageQueue
    header: SendMessageResponseHeader
    msg_ids: Sequence[str]
    region_id: str | None
    is_trace_on: bool

    def results(self, attempts: Sequence[SendAttempt]) -> list[SendResult]:
        """One result per message; a broker answers a batch with the first offset and all offset ids."""
        tries = tuple(attempts)
        header = self.header
        msg_ids = self.msg_ids.texts() if type(self.msg_ids) is MsgIds else [*self.msg_ids]
        if twins is not None:
            plain: list[SendResult] | None = twins.send_results(
                self.status,
                self.queue,
                header.queue_offset,
                msg_ids,
                header.msg_id,
                header.transaction_id,
                self.region_id,
                header.recall_handle,
                self.is_trace_on,
                tries,
            )
            if plain is not None:
                return plain
        offset_msg_ids = header.msg_id.split(",")
        return [
            _send_result(
                self.status,
                self.queue,
                header.queue_offset + number,
                msg_id,
                offset_msg_id,
                header.transaction_id,
                self.region_id,
                header.recall_handle,
                self.is_trace_on,
                tries,
            )
            for number, (msg_id, offset_msg_id) in enumerate(zip(msg_ids, offset_msg_ids, strict=True))
        ]

    def stored_batch(self, attempts: Sequence[SendAttempt]) -> StoredBatch:
        """One result for all messages."""
        return StoredBatch(
            status=self.status,
            queue=self.queue,
            queue_offset=self.header.queue_offset,
            count=len(self.msg_ids),
            attempts=tuple(attempts),
        )


_placed = maker_of(Placed)


def read_answer(outgoing: Outgoing, queue: MessageQueue, answer: RemotingCommand) -> Placed:
    """Parse the answer of a broker that has stored a request.

    Raises:
        UnknownOutcomeError: stored, but the answer's place is unreadable.
    """
    try:
        header = decode_header(SendMessageResponseHeader, answer.ext_fields)
        if outgoing.is_inner and "," not in header.msg_id:  # one id for the whole batch
            header = replace(header, msg_id=",".join([header.msg_id] * len(outgoing.msg_ids)))
        stored = header.msg_id.count(",") + 1
        if stored != len(outgoing.msg_ids):
            raise ProtocolError(f"{stored} ids for {len(outgoing.msg_ids)} messages")
    except ProtocolError as error:
        raise UnknownOutcomeError(
            f"a broker of {queue} answered a send with impossible values: {error}"
        ) from error
    if header.queue_id != queue.queue_id:
        queue = replace(queue, queue_id=header.queue_id)
    return _placed(
        status=STATUS_BY_CODE[answer.code],
        queue=queue,
        header=header,
        msg_ids=outgoing.msg_ids,
        region_id=answer.ext_fields.get("MSG_REGION"),
        is_trace_on=answer.ext_fields.get("TRACE_ON") != "false",
    )


def refusal(outgoing: Outgoing, answer: RemotingCommand, addr: str) -> BrokerError:
    """Return the error of a message that is not stored; it explains a refused type and a refused size."""
    hint = refused_type_hint(answer.code, answer.remark, outgoing.topic)
    return BrokerError(answer.code, answer.remark, addr, hint or _size_hint(outgoing, answer))


def _size_hint(outgoing: Outgoing, answer: RemotingCommand) -> str:
    if outgoing.code != RequestCode.SEND_BATCH_MESSAGE or not _TOO_LARGE.search(answer.remark or ""):
        return ""
    return (
        f"the batch has {len(outgoing.body)} bytes, more than the broker's maxMessageSize: send smaller ones "
        "(max_batch_bytes, in Spark batchBytes), or raise maxMessageSize on the brokers"
    )


def send_error(outgoing: Outgoing, attempts: Sequence[SendAttempt]) -> SendError:
    """Return the error of a send without success."""
    what = f"{number_of(len(outgoing.msg_ids), 'message')} for topic {outgoing.topic!r}"
    if any(attempt.outcome is Outcome.UNKNOWN for attempt in attempts):
        return UnknownOutcomeError(f"{what} may or may not be stored", attempts)
    return SendError(f"{what} could not be stored", attempts)
