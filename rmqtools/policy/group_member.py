"""Makes a group member from its own report (running info). Pure.

Members that pop all queues of a broker report one with the id -1; a view has each queue instead.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rmqtools.model.group import Connection
from rmqtools.model.group_view import GroupMember, WaitingQueue
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX, without_this_namespace
from rmqtools.model.queue import MessageQueue
from rmqtools.model.running_info import (
    PROP_CLIENT_VERSION,
    PROP_CONSUME_ORDERLY,
    PROP_NAMESERVER_ADDR,
    ConsumerRunningInfo,
)
from rmqtools.policy.allocate.strategy_table import JAVA_NAMES

PROP_RMQTOOLS_VERSION = "PROP_RMQTOOLS_VERSION"
PROP_RMQTOOLS_STRATEGY = "PROP_RMQTOOLS_STRATEGY"
PROP_RMQTOOLS_PIN_VERSION = "PROP_RMQTOOLS_PIN_VERSION"
PROP_RMQTOOLS_LONGEST_CALL = "PROP_RMQTOOLS_LONGEST_CALL"  # seconds of the longest running listener call
PROP_RMQTOOLS_LAST_ERROR = "PROP_RMQTOOLS_LAST_ERROR"  # of a listener
PROP_RMQTOOLS_WAITING = "PROP_RMQTOOLS_WAITING"  # JSON: [topic, broker, queue id, queue offset, failures]...
PROP_RMQTOOLS_NOW_MS = "PROP_RMQTOOLS_NOW_MS"  # the time of its machine
PROP_RMQTOOLS_PASSED_OVER = "PROP_RMQTOOLS_PASSED_OVER"  # messages whose heads are broken, since the start

_JAVA_STRATEGY_PROPERTY = "allocateMessageQueueStrategy"  # Java dumps its consumer's fields as text
_JAVA_CLASS = re.compile(r"(?:[\w$]+\.)*([\w$]+)@[0-9a-f]+")


def member_of(connection: Connection, info: ConsumerRunningInfo, namespace: str | None = None) -> GroupMember:
    """Combine the broker's data of a member with its own report; topics without ``namespace``.

    Source of the rule: DefaultMQPushConsumerImpl.consumerRunningInfo (Java client).
    """
    orderly = info.properties.get(PROP_CONSUME_ORDERLY)
    pops = [
        queue.without_namespace(namespace) for queue, state in info.mq_pop_table.items() if not state.dropped
    ]
    return GroupMember(
        client_id=connection.client_id,
        addr=connection.client_addr,
        language=connection.language,
        version=info.properties.get(PROP_CLIENT_VERSION) or str(connection.version),
        rmqtools_version=info.properties.get(PROP_RMQTOOLS_VERSION),
        queues=tuple(sorted(queue.without_namespace(namespace) for queue in info.queues)),
        pops=tuple(sorted(pops)),
        strategy=strategy_name(info.properties),
        pin_version=_whole_number(info.properties.get(PROP_RMQTOOLS_PIN_VERSION)),
        subscriptions=frozenset(
            (without_this_namespace(data.topic, namespace), data.sub_string, data.expression_type)
            for data in info.subscription_set
            if not data.topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
        ),
        sub_versions={
            without_this_namespace(data.topic, namespace): data.sub_version for data in info.subscription_set
        },
        orderly=None if orderly is None else orderly.lower() == "true",
        message_model=info.properties.get("messageModel"),
        name_server=_name_servers(info.properties.get(PROP_NAMESERVER_ADDR)),
        states={
            queue.without_namespace(namespace): state
            for queue, state in info.mq_table.items()
            if not state.dropped
        },
        rates={
            without_this_namespace(topic, namespace): status for topic, status in info.status_table.items()
        },
        longest_call=_seconds(info.properties.get(PROP_RMQTOOLS_LONGEST_CALL)),
        last_error=info.properties.get(PROP_RMQTOOLS_LAST_ERROR),
        waiting=tuple(_waiting(info.properties.get(PROP_RMQTOOLS_WAITING), namespace)),
        now_ms=_whole_number(info.properties.get(PROP_RMQTOOLS_NOW_MS)) or 0,
    )


def with_each_queue(member: GroupMember, queues: Collection[MessageQueue]) -> GroupMember:
    """Replace "all queues of a broker" by these queues: a member reports it as queue id -1.

    Source of the rule: QueryAssignmentProcessor.allocate4Pop (broker 5.5.0).
    """

    def each(held: Sequence[MessageQueue]) -> tuple[MessageQueue, ...]:
        places = {(queue.topic, queue.broker_name) for queue in held if queue.queue_id < 0}
        of_them = {queue for queue in queues if (queue.topic, queue.broker_name) in places}
        known = {(queue.topic, queue.broker_name) for queue in of_them}
        rest = [
            queue for queue in held if queue.queue_id >= 0 or (queue.topic, queue.broker_name) not in known
        ]
        return tuple(sorted({*rest, *of_them}))

    return replace(member, queues=each(member.queues), pops=each(member.pops))


def silent_member(connection: Connection, error: str) -> GroupMember:
    """Make a member that brokers know but that gave no report."""
    return GroupMember(
        client_id=connection.client_id,
        addr=connection.client_addr,
        language=connection.language,
        version=str(connection.version),
        error=error,
    )


def strategy_name(properties: Mapping[str, str]) -> str | None:
    """Return our name for a member's strategy, else Java's class name; None if it is not reported."""
    if (ours := properties.get(PROP_RMQTOOLS_STRATEGY)) is not None:
        return ours
    found = _JAVA_CLASS.fullmatch(properties.get(_JAVA_STRATEGY_PROPERTY, ""))
    return None if found is None else JAVA_NAMES.get(found[1], found[1])


def format_waiting(waiting: Iterable[WaitingQueue]) -> str:
    """Format waiting queues for a member's report."""
    rows = [
        [one.queue.topic, one.queue.broker_name, one.queue.queue_id, one.queue_offset, one.times]
        for one in waiting
    ]
    return json.dumps(rows, separators=(",", ":"))


def _waiting(text: str | None, namespace: str | None) -> Iterator[WaitingQueue]:
    """Parse waiting queues; leave out what another version may write."""
    try:
        rows = json.loads(text or "[]")
    except ValueError:
        return
    for row in rows if isinstance(rows, list) else ():
        match row:
            case [str(topic), str(broker), int(queue_id), int(offset), int(times)]:
                queue = MessageQueue(topic, broker, queue_id).without_namespace(namespace)
                yield WaitingQueue(queue=queue, queue_offset=offset, times=times)


def _name_servers(text: str | None) -> str | None:
    return None if text is None else ";".join(sorted(filter(None, text.split(";"))))


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _whole_number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
