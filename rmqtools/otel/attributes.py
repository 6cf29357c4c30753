"""Names and values of attributes, by the semantic conventions for messaging.

Source of the rule: OpenTelemetry semantic conventions, messaging spans, messaging metrics and RocketMQ
(status: development).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from rmqtools.model.message import Message, MessageExt, body_length
from rmqtools.model.message_const import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_TRANSACTION_PREPARED,
)
from rmqtools.model.result import SendResult
from rmqtools.observer import Identity

SYSTEM: Final = "messaging.system"
OPERATION_NAME: Final = "messaging.operation.name"
OPERATION_TYPE: Final = "messaging.operation.type"
DESTINATION: Final = "messaging.destination.name"
PARTITION: Final = "messaging.destination.partition.id"
BATCH_COUNT: Final = "messaging.batch.message_count"
CLIENT_ID: Final = "messaging.client.id"
CONSUMER_GROUP: Final = "messaging.consumer.group.name"
MESSAGE_ID: Final = "messaging.message.id"
BODY_SIZE: Final = "messaging.message.body.size"
NAMESPACE: Final = "messaging.rocketmq.namespace"
TAG: Final = "messaging.rocketmq.message.tag"
KEYS: Final = "messaging.rocketmq.message.keys"
TYPE: Final = "messaging.rocketmq.message.type"
DELAY_LEVEL: Final = "messaging.rocketmq.message.delay_time_level"
ERROR_TYPE: Final = "error.type"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
PRODUCER_GROUP: Final = "rmqtools.producer.group.name"
OUTCOME: Final = "rmqtools.send.outcome"
ATTEMPTS: Final = "rmqtools.send.attempts"
RECONSUME_TIMES: Final = "rmqtools.message.reconsume_times"

Attributes = dict[str, str | int | Sequence[str]]


def operation(name: str, topics: Sequence[str]) -> Attributes:
    """Return the attributes of an operation: what is done, and to which topic if there is one."""
    found: Attributes = {SYSTEM: "rocketmq", OPERATION_NAME: name, OPERATION_TYPE: name}
    if len(set(topics)) == 1:
        found[DESTINATION] = topics[0]
    return found


def of_client(who: Identity, *, consumes: bool) -> Attributes:
    """Return the attributes of a client: itself and its group."""
    found: Attributes = {CLIENT_ID: who.client_id, CONSUMER_GROUP if consumes else PRODUCER_GROUP: who.group}
    if who.namespace:
        found[NAMESPACE] = who.namespace
    return found


def of_sent(message: Message, *, in_transaction: bool = False) -> Attributes:
    """Return the attributes of a message to send."""
    keys = message.keys_text
    kind = "transaction" if in_transaction else _sent_type(message)
    found: Attributes = {BODY_SIZE: body_length(message.body), TYPE: kind}
    if message.tags:
        found[TAG] = message.tags
    if keys:
        found[KEYS] = keys.split(" ")
    if message.delay_level:
        found[DELAY_LEVEL] = message.delay_level
    return found


def of_stored(result: SendResult) -> Attributes:
    """Return the attributes of a place where a message was stored."""
    found: Attributes = {
        MESSAGE_ID: result.msg_id,
        PARTITION: f"{result.queue.broker_name}/{result.queue.queue_id}",
        ATTEMPTS: len(result.attempts),
    }
    if result.attempts:
        host, _, port = result.attempts[-1].broker_addr.rpartition(":")
        found |= {SERVER_ADDRESS: host.strip("[]"), SERVER_PORT: int(port)}
    return found


def of_received(message: MessageExt) -> Attributes:
    """Return the attributes of a message received, but of its body: it may not be decompressed yet."""
    found: Attributes = {
        MESSAGE_ID: message.msg_id,
        PARTITION: f"{message.broker_name}/{message.queue_id}",
        TYPE: _received_type(message.properties),
    }
    if message.tags:
        found[TAG] = message.tags
    if message.keys:
        found[KEYS] = message.keys.split(" ")
    if message.reconsume_times:
        found[RECONSUME_TIMES] = message.reconsume_times
    return found


def _sent_type(message: Message) -> str:
    if message.is_delayed:
        return "delay"
    return "fifo" if message.sharding_key else "normal"


def _received_type(properties: Mapping[str, str]) -> str:
    if PROPERTY_TRANSACTION_PREPARED in properties:
        return "transaction"
    return "delay" if PROPERTY_DELAY_TIME_LEVEL in properties else "normal"
