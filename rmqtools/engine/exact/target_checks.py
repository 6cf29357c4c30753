"""Refusals of targets on which an exact appender could not keep its promise."""

from rmqtools.config import ProducerConfig
from rmqtools.engine.admin.broker_requests import fetch_settings
from rmqtools.engine.connection.client import ClientCore
from rmqtools.errors import BrokerError, ConfigError
from rmqtools.model.codes import ResponseCode
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import BATCH_CQ, TopicConfig
from rmqtools.number_of import number_of
from rmqtools.policy.endpoint.features import EXACT_APPENDS
from rmqtools.policy.publish import is_static
from rmqtools.protocol.headers.topic import GetTopicConfigRequestHeader
from rmqtools.protocol.wire.bodies import parse_topic_config
from rmqtools.protocol.wire.command import request

_CLEANUP = "cleanup.policy"
_NO_TOPIC_CONFIG = (ResponseCode.REQUEST_CODE_NOT_SUPPORTED, ResponseCode.TOPIC_NOT_EXIST)


def check_producer(config: ProducerConfig) -> None:
    """Refuse a producer whose messages share requests, or are sent twice.

    Raises:
        ConfigError: names the setting.
    """
    for name in ("linger", "enable_trace"):
        if getattr(config, name):
            raise ConfigError(
                f"{name}={getattr(config, name)!r} of the producer: an exact appender has one request on the "
                "wire and sends nothing else; give it a producer without"
            )


async def check_target(client: ClientCore, queue: MessageQueue) -> dict[str, str]:
    """Refuse a queue whose broker cannot say for certain what it has stored; return the broker's settings.

    Raises:
        UnsupportedError: the broker is behind a proxy.
        ConfigError: not a queue of the topic, a static topic, or a setting of topic or broker; names it.
        TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be written.
    """
    await client.routes.refresh(queue.topic)
    client.endpoint.require(EXACT_APPENDS)
    info = await client.routes.publish_info(queue.topic)
    if info.route.topic_queue_mapping_by_broker or is_static(queue):
        raise ConfigError(
            f"topic {queue.topic!r} is static: its queues move between brokers, so the end of one says "
            "nothing about a late request to another; append to an ordinary topic"
        )
    if queue not in info.queues:
        raise ConfigError(
            f"{queue} is not among the {number_of(len(info.queues), 'queue')} of the topic that can be "
            "written: it has fewer queues than before, or another broker"
        )
    _check_topic(queue.topic, await _topic_config(client, queue))
    settings = await fetch_settings(client, client.routes.master_addr(queue.broker_name))
    _check_broker(queue.broker_name, settings)
    return settings


async def _topic_config(client: ClientCore, queue: MessageQueue) -> TopicConfig | None:
    """Return the settings of a topic on a queue's broker; None: an old broker, without attributes."""
    addr = client.routes.master_addr(queue.broker_name)
    wanted = GetTopicConfigRequestHeader(topic=client.wire_topic(queue.topic))
    answer = await client.remoting.invoke(addr, request(wanted))
    if answer.code in _NO_TOPIC_CONFIG:
        return None
    if answer.code != ResponseCode.SUCCESS:
        raise BrokerError(answer.code, answer.remark, addr)
    return parse_topic_config(answer.body)


def _check_topic(topic: str, config: TopicConfig | None) -> None:
    if config is None:
        return
    if config.holds_batches:
        raise ConfigError(
            f"topic {topic!r} has the queue type {BATCH_CQ}: a stored batch has no mark of its messages; "
            "append to a topic of queue type SimpleCQ"
        )
    if (config.attributes or {}).get(_CLEANUP) == "COMPACTION":
        raise ConfigError(
            f"topic {topic!r} has {_CLEANUP}=COMPACTION: brokers remove messages from its queues, so that "
            "their ends do not show what is stored; append to a topic without it"
        )


def _check_broker(broker_name: str, config: dict[str, str]) -> None:
    """Refuse settings with which a broker shows messages in another order than it has stored them."""
    if config.get("enableBuildConsumeQueueConcurrently", "false").lower() == "true":
        raise ConfigError(
            f"broker {broker_name!r} has enableBuildConsumeQueueConcurrently=true: it shows messages in "
            "another order than it has stored them, so a fence message says nothing; set it to false"
        )
    kind = config.get("storeType", "default")
    if kind != "default":
        raise ConfigError(
            f"broker {broker_name!r} has storeType={kind}: for consume queues in RocksDB, the order in which "
            "messages of two topics become visible is not known; append to a broker with storeType=default"
        )
