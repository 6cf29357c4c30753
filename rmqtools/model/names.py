"""Names of topics and groups: namespaces, retry and dead-letter topics, system topics.

A name in a namespace is ``namespace%name``; the prefixes of retry and dead-letter topics stay in front:
``%RETRY%namespace%group``.
Source of the rule: NamespaceUtil, MixAll, TopicValidator, KeyBuilder (Java client).
"""

import re

MAX_TOPIC_LENGTH = 127
LEGAL_NAME = re.compile(r"[%|a-zA-Z0-9_-]+")  # of topics and groups (TopicValidator)

RETRY_GROUP_TOPIC_PREFIX = "%RETRY%"
DLQ_GROUP_TOPIC_PREFIX = "%DLQ%"
LMQ_PREFIX = "%LMQ%"
REPLY_TOPIC_POSTFIX = "REPLY_TOPIC"

CID_RMQ_SYS_PREFIX = "CID_RMQ_SYS_"
DEFAULT_PRODUCER_GROUP = "DEFAULT_PRODUCER"
DEFAULT_CONSUMER_GROUP = "DEFAULT_CONSUMER"
CLIENT_INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"
TOOLS_CONSUMER_GROUP = "TOOLS_CONSUMER"
LOGICAL_QUEUE_MOCK_BROKER_PREFIX = "__syslo__"

HEARTBEAT_SYNCER_TOPIC = "DefaultHeartBeatSyncerTopic"
"""Proxies send the heartbeats of their consumers to one another by it (ProxyConfig of the proxy)."""

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
"""Messages with a delay level wait here; every broker makes the topic at its start."""
DELAY_TOPICS = (SCHEDULE_TOPIC, "rmq_sys_wheel_timer")
"""Messages wait here for their time: those with a delay level, those with a time of delivery."""
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
"""Half messages wait here for their decision; its route names the brokers that have some."""

_SEPARATOR = "%"
_SYSTEM_TOPIC_PREFIX = "rmq_sys_"
FORBIDDEN_SEND_TOPICS = frozenset(
    {
        SCHEDULE_TOPIC,
        HALF_TOPIC,
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
        "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC",
        "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC",
    }
)
_SYSTEM_TOPICS = FORBIDDEN_SEND_TOPICS | {
    "TBW102",
    "BenchmarkTest",
    "CHECKPOINT_TOPIC",
    "RMQ_SYS_TRACE_TOPIC",
}


def is_topic_name(name: str) -> bool:
    """Return whether a topic may have this name."""
    return len(name) <= MAX_TOPIC_LENGTH and LEGAL_NAME.fullmatch(name) is not None


def can_be_sent_to(topic: str) -> bool:
    """Return whether a topic may have this name, and is not one of RocketMQ's own that no client sends to."""
    return is_topic_name(topic) and topic not in FORBIDDEN_SEND_TOPICS


def retry_topic(group: str) -> str:
    """Return the topic where a group's failed messages wait for their next attempt."""
    return RETRY_GROUP_TOPIC_PREFIX + group


def dlq_topic(group: str) -> str:
    """Return the topic of a group's dead letters."""
    return DLQ_GROUP_TOPIC_PREFIX + group


def pop_retry_topic(topic: str, group: str) -> str:
    """Return the retry topic of one topic for a group that pops (5.x)."""
    return f"{RETRY_GROUP_TOPIC_PREFIX}{group}_{topic}"


def is_system_topic(topic: str) -> bool:
    """Return whether RocketMQ uses this topic internally."""
    return topic in _SYSTEM_TOPICS or topic.startswith(_SYSTEM_TOPIC_PREFIX)


def _is_system_name(name: str) -> bool:
    """Return whether a name is in no namespace. The proxies' topic counts: Java's clients never read it."""
    return is_system_topic(name) or name == HEARTBEAT_SYNCER_TOPIC or name.startswith(CID_RMQ_SYS_PREFIX)


def _split_prefix(name: str) -> tuple[str, str]:
    for prefix in (RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX):
        if name.startswith(prefix):
            return prefix, name[len(prefix) :]
    return "", name


def with_namespace(name: str, namespace: str | None) -> str:
    """Return a topic or group name with its namespace, as servers know it. Adds the namespace only once."""
    if not name or not namespace or _is_system_name(name):
        return name
    prefix, rest = _split_prefix(name)
    if rest.startswith(namespace + _SEPARATOR):
        return name
    return f"{prefix}{namespace}{_SEPARATOR}{rest}"


def without_namespace(name: str) -> str:
    """Return a name without any namespace."""
    if not name or _is_system_name(name):
        return name
    prefix, rest = _split_prefix(name)
    namespace, separator, bare = rest.partition(_SEPARATOR)
    return prefix + bare if namespace and separator else name


def without_this_namespace(name: str, namespace: str | None) -> str:
    """Return a name without ``namespace``; names in other namespaces are unchanged."""
    if not name or not namespace:
        return name
    _, rest = _split_prefix(name)
    return without_namespace(name) if rest.startswith(namespace + _SEPARATOR) else name


def namespace_of(name: str) -> str:
    """Return the namespace of a name; "" if it has none."""
    if not name or _is_system_name(name):
        return ""
    _, rest = _split_prefix(name)
    namespace, separator, _ = rest.partition(_SEPARATOR)
    return namespace if separator else ""
