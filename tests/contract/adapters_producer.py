"""Adapters of the vectors about sending: what is refused, which queue, when again, how signed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rmqtools.config import ProducerConfig
from rmqtools.engine.producer.encode_send import Encoder
from rmqtools.errors import (
    BrokerError,
    ConnectionLostError,
    MessageRejectedError,
    RemotingConnectError,
    RemotingError,
    RemotingTimeoutError,
    RocketMQError,
    SendError,
)
from rmqtools.model.message import Message
from rmqtools.model.message_const import (
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    PROPERTY_WAIT_STORE_MSG_OK,
)
from rmqtools.model.names import FORBIDDEN_SEND_TOPICS, MAX_TOPIC_LENGTH, is_system_topic
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import SendStatus
from rmqtools.policy.fault import FaultItem, LatencyFaultTolerance, LatencyTable, select_tolerant
from rmqtools.policy.retry import RETRY_RESPONSE_CODES, SendLoop
from rmqtools.policy.select import QueueIndex
from rmqtools.policy.selectors import SelectMessageQueueByHash, java_hash_code
from rmqtools.policy.validate import (
    MAX_GROUP_LENGTH,
    check_batch,
    check_message,
    check_name,
)
from rmqtools.protocol.messages.batch import decode_batch, encode_batch
from rmqtools.protocol.messages.properties import format_properties, parse_properties
from rmqtools.protocol.wire.acl import AclSigner, signed_content
from rmqtools.protocol.wire.command import RemotingCommand
from tests.contract.adapters_policy import pair
from tests.contract.vector_spec import Case, Spec, outcome

_NOW = 1_700_000_000_000
_UNKNOWN_BROKER = "unknown"
_MAX_MESSAGE_BYTES = 4 * 1024 * 1024


def select_by_hash(case: Case) -> Case:
    queues = [MessageQueue("T", "b", number) for number in range(case["queues"])]
    selected = SelectMessageQueueByHash()(queues, Message("T", b"x"), case["arg"])
    return {"hashCode": java_hash_code(case["arg"]), "selected": selected.queue_id}


def fault_duration(case: Case) -> Case:
    table = LatencyTable(tuple(case["latencyMax"]), tuple(case["notAvailableDuration"]))
    tolerance = LatencyFaultTolerance(enabled=case["sendLatencyFaultEnable"], table=table)
    tolerance.update("b", case["currentLatency"], isolation=case["isolation"], reachable=True, now_ms=_NOW)
    return {"recorded": [show_fault(name, item) for name, item in tolerance.items.items()]}


def show_fault(name: str, item: FaultItem) -> Case:
    return {
        "name": name,
        "currentLatency": item.current_latency_ms,
        "notAvailableDuration": 0 if item.start_ms is None else item.start_ms - _NOW,
        "reachable": item.is_reachable,
    }


def fault_window(case: Case) -> Case:
    given, duration = case["startTimestampPreset"], case["notAvailableDuration"]
    preset = None if given == "never set" else _NOW + given
    table = LatencyTable((0,), (duration,))  # any latency: this long
    tolerance = LatencyFaultTolerance(enabled=True, table=table, items={"b": FaultItem(start_ms=preset)})
    tolerance.update("b", 77, isolation=False, reachable=case["reachable"], now_ms=_NOW)
    names = {_NOW + duration: "now + duration", preset: "kept at preset", None: "never set"}
    return {
        "startTimestampAfter": names[tolerance.items["b"].start_ms],
        "currentLatencyAfter": tolerance.items["b"].current_latency_ms,
        "isAvailable": tolerance.is_available("b", _NOW),
        "isReachable": tolerance.is_reachable("b"),
        "unknownBrokerAvailable": tolerance.is_available(_UNKNOWN_BROKER, _NOW),
        "unknownBrokerReachable": tolerance.is_reachable(_UNKNOWN_BROKER),
    }


def fault_detect(case: Case) -> Case:
    items = {item["name"]: known_broker(item) for item in case["items"]}
    tolerance = LatencyFaultTolerance(enabled=True, items=items)
    before = sorted(name for name in items if tolerance.is_reachable(name)) or ["null"]
    for name in tolerance.due_for_detection(_NOW):
        tolerance.detected(name, None if name.startswith("gone") else "ok" in name)
    after = {name: item.is_reachable for name, item in tolerance.items.items()}
    return {"pickOneAtLeastBefore": before, "reachableAfterRound": after}


def known_broker(given: Case) -> FaultItem:
    return FaultItem(check_ms=_NOW if given["checkDue"] else _NOW + 1, is_reachable=given["reachable"])


def fault_select(case: Case) -> Case:
    queues = [MessageQueue("T", *queue) for queue in case["queues"]]
    index = QueueIndex(case["startIndex"])
    items = {broker["name"]: judged_broker(broker) for broker in case["brokers"]}
    tolerance = LatencyFaultTolerance(enabled=case["sendLatencyFaultEnable"], items=items)
    return {"ops": [fault_select_step(queues, index, tolerance, op) for op in case["ops"]]}


def judged_broker(given: Case) -> FaultItem:
    return FaultItem(start_ms=None if given["available"] else _NOW + 1, is_reachable=given["reachable"])


def fault_select_step(
    queues: Sequence[MessageQueue], index: QueueIndex, tolerance: LatencyFaultTolerance, op: Case
) -> Case:
    answer = outcome(lambda: pair(select_tolerant(queues, index, op["lastBrokerName"], tolerance, _NOW)))
    return answer | {"indexAfter": index.value, "resetIndex": False}  # ours never resets: all have false


_SILENCE: Mapping[str, type[RemotingError]] = {
    "CONNECT": RemotingConnectError,
    "TIMEOUT": RemotingTimeoutError,
    "SEND_REQUEST": ConnectionLostError,
    "TOO_MUCH": RemotingError,
}
_STORED: Mapping[str, SendStatus] = {"OK": SendStatus.SEND_OK, **SendStatus.__members__}


def scripted(answer: str) -> SendStatus | RocketMQError:
    """What a scripted broker's answer is to us."""
    if answer in _STORED:
        return _STORED[answer]
    if answer in _SILENCE:
        return _SILENCE[answer]("scripted")
    return BrokerError(int(answer.removeprefix("BROKER:")), "scripted", "h:1")


def send_retry(case: Case) -> Case:
    queues = [MessageQueue("T", *queue) for queue in case["queues"]]
    index = QueueIndex(case["startIndex"])
    loop = SendLoop(1 + case["retryTimesWhenSendFailed"], case["retryAnotherBrokerWhenNotStoreOK"])
    attempts: list[Any] = []
    answer = outcome(run_loop, loop, queues, index, case["brokerAnswers"], attempts)
    codes = sorted(RETRY_RESPONSE_CODES)
    return answer | {"attempts": attempts, "indexAfter": index.value, "retryResponseCodes": codes}


def run_loop(
    loop: SendLoop, queues: Sequence[MessageQueue], index: QueueIndex, answers: Sequence[str], attempts: Any
) -> Case:
    """Send as the engine does: a message that was stored once is stored, whatever came after."""
    kept = None
    while loop.attempts_left:
        queue = select_tolerant(queues, index, loop.last_broker_name, LatencyFaultTolerance(), _NOW)
        answer = scripted(answers[len(attempts)])
        attempts.append(pair(queue))
        if isinstance(answer, SendStatus):
            kept = {"sendStatus": answer.name, "queue": pair(queue)}
            loop.stored(queue, answer)
        else:
            loop.failed(queue, answer)
    if kept is None:
        raise SendError("not stored")
    return kept


_X = Message("T", b"x")
_BATCHES: Mapping[str, Any] = {
    "null": None,
    "ok": [_X, Message("T", b"y")],
    "topics differ": [_X, Message("U", b"y")],
    # A message of ours cannot but wait; asking otherwise by Java's property is refused, alone or in a batch.
    "wait differs": [_X, Message("T", b"y", properties={PROPERTY_WAIT_STORE_MSG_OK: "false"})],
    "delay": [_X, Message("T", b"y", delay_level=1)],
}


def message_batch_rules(case: Case) -> Case:
    return outcome(batch_of, _BATCHES[case["what"]])


def batch_of(messages: Sequence[Message]) -> Case:
    """Check and encode as the engine does; the unique keys, which Java sets elsewhere, are taken out."""
    for message in messages:
        check_message(message, _MAX_MESSAGE_BYTES)
    check_batch(messages)
    outgoing = Encoder(ProducerConfig(name_server="h:1"), lambda _: "ID", lambda: _NOW).encode_batch(messages)
    wait = parse_properties(outgoing.properties_text)[PROPERTY_WAIT_STORE_MSG_OK]
    return {
        "topic": outgoing.topic,
        "waitStoreMsgOK": wait == "true",
        "encoded": without_unique_keys(bytes(outgoing.body)).hex(),
    }


def without_unique_keys(body: bytes) -> bytes:
    parts = decode_batch(body)
    for part in parts:
        del part.properties[PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX]
    return b"".join(
        encode_batch([(part.flag, part.body, format_properties(part.properties).encode())]) for part in parts
    )


def passes(check: Callable[..., object], *arguments: Any) -> Case:
    """A check's outcome as the vectors write it."""
    return outcome(lambda: [check(*arguments), "ok"][1])


def refuse(refused: bool) -> None:
    """Ours answers by a bool where Java throws."""
    if refused:
        raise MessageRejectedError("refused")


def validators(case: Case) -> Case:
    text = case["text"]
    return {
        "checkTopic": passes(check_name, "topic", text, MAX_TOPIC_LENGTH),
        "checkGroup": passes(check_name, "group", text, MAX_GROUP_LENGTH),
        "isSystemTopic": passes(lambda: refuse(is_system_topic(text))),
        "isNotAllowedSendTopic": passes(lambda: refuse(text in FORBIDDEN_SEND_TOPICS)),
    }


def validators_message(case: Case) -> Case:
    body: Any = None if case["bodyLength"] is None else bytes(case["bodyLength"])
    return {"result": passes(check_message, Message(case["topic"], body), case["maxMessageSize"])}


def validators_no_message(case: Case) -> Case:
    return {"result": passes(check_message, case["message"], _MAX_MESSAGE_BYTES)}


def acl_signature(case: Case) -> Case:
    signer = AclSigner(case["accessKey"], case["secretKey"], case["securityToken"])
    body = bytes.fromhex(case["body"] or "")
    fields = dict(signer.sign(RemotingCommand(10, case["extFields"] or {}, body)).ext_fields)
    unsigned: Any = {key: value for key, value in fields.items() if key != "Signature"}
    return {
        "signedContent": signed_content(unsigned, body).hex(),
        "signature": fields["Signature"],
        "extFieldsAfter": fields,
    }


_CLIENT_EXCEPTION = "org.apache.rocketmq.client.exception.MQClientException"
_BROKER_EXCEPTION = "org.apache.rocketmq.client.exception.MQBrokerException"
_ACL_INPUTS = ("accessKey", "secretKey", "securityToken", "extFields", "body")

SPECS: Mapping[str, tuple[Spec, ...]] = {
    "select_by_hash": (
        Spec(  # type: Python has one int; it is hashed as an Integer where it fits, else as a Long
            inputs=("arg", "queues"), adapter=select_by_hash, labels=("type",)
        ),
    ),
    "fault_duration": (
        Spec(
            inputs=(
                "latencyMax",
                "notAvailableDuration",
                "sendLatencyFaultEnable",
                "currentLatency",
                "isolation",
            ),
            adapter=fault_duration,
        ),
    ),
    "fault_window": (
        Spec(inputs=("startTimestampPreset", "notAvailableDuration", "reachable"), adapter=fault_window),
    ),
    "fault_detect": (
        Spec(  # resolver and detector tell in words what all cases have and the adapter does
            inputs=("items",), adapter=fault_detect, labels=("resolver", "detector")
        ),
    ),
    "fault_select": (
        Spec(
            inputs=("sendLatencyFaultEnable", "queues", "startIndex", "brokers", "ops[].lastBrokerName"),
            adapter=fault_select,
        ),
    ),
    "send_retry": (
        Spec(
            inputs=(
                "queues",
                "startIndex",
                "retryTimesWhenSendFailed",
                "retryAnotherBrokerWhenNotStoreOK",
                "brokerAnswers",
            ),
            adapter=send_retry,
            # The attempts tell whether the last broker refused or all tries failed: one error of ours.
            errors={_CLIENT_EXCEPTION: SendError, _BROKER_EXCEPTION: SendError},
        ),
    ),
    "message_batch_rules": (
        Spec(inputs=("what",), adapter=message_batch_rules),  # the file holds no messages, only their names
    ),
    "validators": (
        Spec(
            op="checkMessage",
            inputs=("topic", "bodyLength", "maxMessageSize"),
            adapter=validators_message,
        ),
        Spec(op="checkMessage", inputs=("message",), adapter=validators_no_message),
        Spec(inputs=("text",), adapter=validators),
    ),
    "acl_signature": (Spec(inputs=_ACL_INPUTS, adapter=acl_signature, unpinned=("signedContent",)),),
}
