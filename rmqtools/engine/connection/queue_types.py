"""Queue types of topics: whether brokers keep batches of a topic as one message.

Brokers filter a stored batch (queue type BatchCQ) as a whole. A batch has none of the tags and properties of
its messages, so with a filter it is not sent at all. Tags are therefore compared by the client alone.
Source of the rules: SendMessageProcessor.sendBatchMessage, ExpressionMessageFilter, QueueTypeUtils (broker).
Ours: Java's consumers send the filter nevertheless, and receive only batches that match as a whole.

A batch is kept as one message only if its request has a unique id of its own. In other topics brokers 5.1.4
and older append that id to each message, where it replaces the message's own; 5.5.0 does not. So
``inner_batches`` asks for the queue type first.
"""

from typing import NamedTuple

from rmqtools.clock import Clock
from rmqtools.engine.connection.remoting import Remoting
from rmqtools.engine.connection.routes import Routes
from rmqtools.engine.connection.single_flight import SharedWork
from rmqtools.errors import BrokerError, ConfigError, ProtocolError
from rmqtools.log import get_logger
from rmqtools.model.codes import ResponseCode
from rmqtools.model.group import SUB_ALL, SubscriptionData
from rmqtools.model.names import with_namespace
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import BATCH_CQ, TopicConfig
from rmqtools.policy.subscription import TAG
from rmqtools.protocol.headers.topic import GetTopicConfigRequestHeader
from rmqtools.protocol.wire.bodies import parse_body
from rmqtools.protocol.wire.command import request

log = get_logger(__name__)

_KNOWN_FOR = 60.0  # seconds; a topic may be deleted and created again with another type
_NO_BATCHES = (ResponseCode.REQUEST_CODE_NOT_SUPPORTED, ResponseCode.TOPIC_NOT_EXIST)


class _Known(NamedTuple):
    """An answer, and the end of its validity."""

    holds_batches: bool
    until: float


class QueueTypes:
    """The queue types of topics, fetched once per topic and broker, and only where one matters."""

    def __init__(self, remoting: Remoting, routes: Routes, namespace: str | None, clock: Clock) -> None:
        self._remoting = remoting
        self._routes = routes
        self._namespace = namespace
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._asking = SharedWork[_Known]()

    async def close(self) -> None:
        """Cancel running requests, before the connections are closed."""
        await self._asking.close()

    async def filter_at_broker(self, queue: MessageQueue, wanted: SubscriptionData) -> SubscriptionData:
        """Return the filter to send for ``wanted``: everything, if the queue holds batches.

        Raises:
            ConfigError: a condition on a topic whose queues hold batches.
            RemotingError: the broker did not answer.
        """
        if wanted.sub_string == SUB_ALL or not await self.holds_batches(queue):
            return wanted
        if wanted.expression_type != TAG:
            raise ConfigError(
                f"topic {queue.topic!r} has the queue type {BATCH_CQ}: brokers evaluate a condition for a "
                f"stored batch as a whole, so sql={wanted.sub_string!r} would leave out the messages in it; "
                "use tags, or filter the messages received"
            )
        return SubscriptionData(topic=wanted.topic, sub_version=wanted.sub_version)

    async def holds_batches(self, queue: MessageQueue, *, timeout: float | None = None) -> bool:
        """Return whether the broker stores a batch in this queue as one message.

        False, with a warning in the log, if the broker refuses the request for the topic's settings.

        Raises:
            RemotingError: the broker did not answer.
        """
        topic = with_namespace(queue.topic, self._namespace)
        key = f"{topic}@{self._routes.broker_name(queue)}"
        known = self._known.get(key)
        if known is None or known.until <= self._clock.monotonic():
            addr = self._routes.reading_addr(queue).broker_addr
            known = self._known[key] = await self._asking.run(key, lambda: self._ask(topic, addr, timeout))
        return known.holds_batches

    async def _ask(self, topic: str, addr: str, timeout: float | None) -> _Known:
        """Fetch a topic's type. An old broker does not know the request, and stores no batches."""
        holds_batches = False
        try:
            command = request(GetTopicConfigRequestHeader(topic=topic))
            answer = await self._remoting.invoke(addr, command, timeout=timeout)
            if answer.code == ResponseCode.SUCCESS:
                holds_batches = parse_body(TopicConfig, answer.body).holds_batches
            elif answer.code not in _NO_BATCHES:
                raise BrokerError(answer.code, answer.remark, addr)
        except (BrokerError, ProtocolError) as error:
            log.warning("queue_type_unknown", topic=topic, addr=addr, reason=str(error))
        return _Known(holds_batches, self._clock.monotonic() + _KNOWN_FOR)
