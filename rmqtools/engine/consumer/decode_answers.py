"""Decodes brokers' answers into messages for consumers. Broken messages do not stop a queue.

Batches stored as one message are unwrapped. Tags are compared again for every message: brokers compare hash
codes, and do not look into batches. A message with a broken head is skipped alone.
Source of the rule: PullAPIWrapper.processPullResult (Java client).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from rmqtools.engine.reading.range_filter import is_wanted
from rmqtools.errors import ProtocolError
from rmqtools.log import get_logger
from rmqtools.model.group import SubscriptionData
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import PullResult
from rmqtools.policy.publish import is_static
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.pop_extra_info import PopExtraInfo
from rmqtools.protocol.headers.pull import PopMessageResponseHeader
from rmqtools.protocol.messages.found import Found, decode_found
from rmqtools.protocol.messages.inner_batch import is_inner_batch
from rmqtools.protocol.messages.popped import (
    Portion,
    broken_extra_infos,
    popped_portions,
    with_extra_info,
)
from rmqtools.protocol.messages.stored import (
    message_starts,
    placed_in_queue,
    queue_id_at,
    queue_offset_at,
    whole_starts,
)
from rmqtools.protocol.wire.command import RemotingCommand

log = get_logger(__name__)


class Pulled(NamedTuple):
    """The result of a pull.

    Attributes:
        messages: the wanted messages, by queue offset.
        next_offset: the queue offset to pull from next.
        error: why no message from ``next_offset`` on was found in the answer; None: the answer is complete.
        rest: how many stored messages of the answer were decoded, if it has more; None: it has not.
    """

    messages: list[MessageExt]
    next_offset: int
    error: ProtocolError | None = None
    rest: int | None = None


class Popped(NamedTuple):
    """The result of a pop.

    Attributes:
        portions: the messages to hand out, nearly always in one portion.
        broken: acknowledgement data of messages with broken heads, which can never be consumed.
        rest: how many more messages the broker has.
    """

    portions: Iterator[Portion]
    broken: list[PopExtraInfo]
    rest: int


class AnswerDecoder:
    """Decodes the answers to one consumer's pulls and pops.

    Args:
        pass_over: counts a message of a topic skipped because its head is broken, and returns the count.
        max_messages: how many stored messages are asked for; a batch counts as one.
        max_body_bytes: the size up to which a body is decompressed.
    """

    def __init__(self, pass_over: Callable[[str], int], *, max_messages: int, max_body_bytes: int) -> None:
        self._pass_over = pass_over
        self._max_messages = max_messages
        self._max_body_bytes = max_body_bytes

    def pulled(
        self,
        queue: MessageQueue,
        result: PullResult,
        *,
        begin: int,
        subscription: SubscriptionData,
        skip: int = 0,
    ) -> Pulled:
        """Return the messages of an answer to a pull from offset ``begin``.

        Bodies that grow come in portions: then :attr:`Pulled.rest` is the next call's ``skip``, and
        :attr:`Pulled.next_offset` its ``begin``.

        Raises:
            ProtocolError: more messages than were asked for, or an offset that no queue can have.
        """
        body, torn = result.body, None
        try:
            starts = message_starts(body)
        except ProtocolError as error:
            starts, torn = whole_starts(body), error
        self._check_count(starts, f"a pull of {queue} at {begin}")
        if is_static(queue):
            body = placed_in_queue(body, queue.queue_id, result.offset_delta)
        starts_left = starts[skip:] if skip else starts
        found = decode_found(body, starts_left, queue, max_body_bytes=self._max_body_bytes)
        self._note_errors(queue, found)
        messages = _from(begin, found.messages)
        wanted = _wanted(messages, subscription)
        rest = skip + found.decoded
        if rest == len(starts) and torn is None:
            return Pulled(wanted, result.next_begin_offset)
        end = messages[-1].queue_offset + 1 if messages else begin
        if rest < len(starts):
            return Pulled(wanted, end, rest=rest)
        text = f"answer to a pull of {queue} at {begin}: {torn}; no message can be found from {end} on"
        return Pulled(wanted, end, ProtocolError(text))

    def popped(
        self, queue: MessageQueue, answer: RemotingCommand, *, topic: str, order: bool = False
    ) -> Popped:
        """Return the messages of an answer to a pop; ``topic`` is the plain name, ``order`` as in the pop.

        Raises:
            ProtocolError: the answer has more messages than were asked for.
        """
        try:
            starts = message_starts(answer.body)
        except ProtocolError as error:  # messages after the tear are delivered again
            log.warning("pop_answer_torn", queue=str(queue), reason=str(error))
            starts = whole_starts(answer.body)
        self._check_count(starts, f"a pop of {queue}")
        found = decode_found(answer.body, starts, queue, unwraps=False, decompresses=False)
        self._note_errors(queue, found)
        header, broker_name = decode_header(PopMessageResponseHeader, answer.ext_fields), queue.broker_name
        messages = with_extra_info(found.messages, header, topic=topic, broker_name=broker_name, order=order)
        places = [
            (queue_id_at(answer.body, start), queue_offset_at(answer.body, start)) for start in found.broken
        ]
        broken = broken_extra_infos(places, found.messages, header, broker_name=broker_name)
        portions = popped_portions(messages, max_body_bytes=self._max_body_bytes)
        return Popped(portions, broken, header.rest_num)

    def _check_count(self, starts: list[int], request: str) -> None:
        """Refuse an answer with too many messages before they are decoded."""
        if len(starts) > self._max_messages:
            raise ProtocolError(
                f"answer to {request} has {len(starts)} messages: {self._max_messages} were asked for"
            )

    def _note_errors(self, queue: MessageQueue, found: Found) -> None:
        for error in found.errors:
            log.warning("message_passed_over", reason=str(error), count=self._pass_over(queue.topic))


def _from(begin: int, messages: list[MessageExt]) -> list[MessageExt]:
    """Remove messages before ``begin``: a pull from inside a stored batch returns the whole batch."""
    if not messages or messages[0].queue_offset >= begin or not is_inner_batch(messages[0].sys_flag):
        return messages
    return [message for message in messages if message.queue_offset >= begin]


def _wanted(messages: list[MessageExt], subscription: SubscriptionData) -> list[MessageExt]:
    if not subscription.tags_set:
        return messages
    return [message for message in messages if is_wanted(message, subscription)]
