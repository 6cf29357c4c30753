"""Message trace of a consumer: records before and after each listener call.

Source of the rules: ConsumeMessageTraceHookImpl, and the calls of hooks in ConsumeMessageConcurrentlyService,
ConsumeMessageOrderlyService and ConsumeMessagePopConcurrentlyService (Java client). Ours: messages behind
``ack_index`` have failed (in Java all of the call have succeeded); messages of a batch are recorded too, to
which brokers give no region, and messages that an operator has sent to the listener; a call is recorded as
timed out when a popped message's invisible time has ended.
"""

import os
import random
from collections.abc import Sequence
from dataclasses import fields
from typing import NamedTuple

from rmqtools.config import ProducerConfig
from rmqtools.config.client import ClientConfig
from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.connection.client import ClientCore, local_address
from rmqtools.engine.producer.encode_send import Encoder
from rmqtools.engine.producer.trace import TraceDispatcher
from rmqtools.model.consume import ACK_ALL, ConsumeConcurrentlyStatus, ConsumeContext, ConsumeOrderlyStatus
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_MSG_REGION, PROPERTY_POP_CK, PROPERTY_TRACE_SWITCH
from rmqtools.model.names import CLIENT_INNER_PRODUCER_GROUP
from rmqtools.model.trace import ConsumeReturnType, SubAfterTrace, SubBeforeTrace
from rmqtools.policy.redelivery import failed_messages
from rmqtools.protocol.messages.message_id import UniqueIdGenerator

_Status = ConsumeConcurrentlyStatus | ConsumeOrderlyStatus
_SUCCESSES = (ConsumeOrderlyStatus.SUCCESS, ConsumeOrderlyStatus.COMMIT)


class TracedCall(NamedTuple):
    """A listener call that has begun: its messages, and the record of each that is traced."""

    began: float
    messages: Sequence[MessageExt]
    traced: Sequence[SubBeforeTrace | None]


class ConsumeTraces:
    """Records of the messages that one consumer gives to its listeners. Safe on any thread."""

    def __init__(self, client: ClientCore, config: PushConsumerConfig) -> None:
        self._clock = client.clock
        self._config = config
        self._ids = UniqueIdGenerator(local_address(config), os.getpid(), random.getrandbits(31))
        producer = _producer_config(config)
        encoder = Encoder(producer, self._ids.next, client.clock.now_ms)
        self.dispatcher = TraceDispatcher(client, producer, encoder)

    def begin(self, messages: Sequence[MessageExt]) -> TracedCall:
        """Record that a listener is about to get messages."""
        now_ms = self._clock.now_ms()
        request_id = self._ids.next(now_ms)
        traced = [self._before(message, request_id, now_ms) for message in messages]
        self.dispatcher.add([record for record in traced if record is not None])
        return TracedCall(self._clock.monotonic(), messages, traced)

    def end(self, call: TracedCall, status: _Status, context: ConsumeContext) -> None:
        """Record the answer of a listener."""
        seconds = self._clock.monotonic() - call.began
        late = seconds >= self._longest(call.messages[0])
        consumed = _consumed(call.messages, status, context)
        records = []
        for index, before in enumerate(call.traced):
            success = index < consumed
            kind = ConsumeReturnType.SUCCESS if success else ConsumeReturnType.FAILED
            if before is not None:
                kind = ConsumeReturnType.TIME_OUT if late else kind
                records.append(self._after(before, call, seconds, success=success, kind=kind))
        self.dispatcher.add(records)

    def raised(self, call: TracedCall) -> None:
        """Record that a listener has raised an exception."""
        seconds, kind = self._clock.monotonic() - call.began, ConsumeReturnType.EXCEPTION
        traced = [before for before in call.traced if before is not None]
        self.dispatcher.add([self._after(one, call, seconds, success=False, kind=kind) for one in traced])

    def _before(self, message: MessageExt, request_id: str, now_ms: int) -> SubBeforeTrace | None:
        """Return the record of one message; None: its broker has traces switched off."""
        if message.properties.get(PROPERTY_TRACE_SWITCH) == "false":
            self.dispatcher.note_switched_off(message.broker_name)
            return None
        return SubBeforeTrace(
            timestamp_ms=now_ms,
            region_id=message.properties.get(PROPERTY_MSG_REGION),
            group=self._config.group,
            request_id=request_id,
            msg_id=message.msg_id,
            retry_times=message.reconsume_times,
            keys=message.keys,
        )

    def _after(
        self,
        before: SubBeforeTrace,
        call: TracedCall,
        seconds: float,
        *,
        success: bool,
        kind: ConsumeReturnType,
    ) -> SubAfterTrace:
        return SubAfterTrace(
            request_id=before.request_id,
            msg_id=before.msg_id,
            cost_ms=int(seconds * 1000) // len(call.messages),
            success=success,
            keys=before.keys,
            return_type=kind,
            timestamp_ms=self._clock.now_ms(),
            group=before.group,
        )

    def _longest(self, message: MessageExt) -> float:
        """Return the seconds after which others may get the messages of a call."""
        is_popped = PROPERTY_POP_CK in message.properties
        return self._config.pop_invisible_time if is_popped else self._config.consume_timeout


def _consumed(messages: Sequence[MessageExt], status: _Status, context: ConsumeContext) -> int:
    """Return how many messages, from the first on, a listener has consumed."""
    if isinstance(status, ConsumeOrderlyStatus):
        return len(messages) if status in _SUCCESSES else 0
    ack_index = context.ack_index if isinstance(context.ack_index, int) else ACK_ALL
    return len(messages) - len(failed_messages(messages, status, ack_index))


def _producer_config(config: PushConsumerConfig) -> ProducerConfig:
    """Return the settings of the trace messages."""
    common = {field.name: getattr(config, field.name) for field in fields(ClientConfig)}
    return ProducerConfig(**common, group=CLIENT_INNER_PRODUCER_GROUP, trace_topic=config.trace_topic)
