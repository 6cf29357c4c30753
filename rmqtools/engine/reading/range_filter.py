"""Filters of range reads: tags or a SQL92 condition, checked by the broker.

- A broker that cannot parse a SQL92 condition answers pulls with all messages. The condition is first sent by
  CHECK_CLIENT_CONFIG (``engine.reading.range_filter``).
- A proxy answers SUCCESS to every CHECK_CLIENT_CONFIG and checks no condition: ``sql=`` is refused.
"""

from collections.abc import Collection

from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.retrying import look_up
from rmqtools.errors import ConfigError
from rmqtools.model.codes import RequestCode
from rmqtools.model.group import SUB_ALL, CheckClientRequestBody, SubscriptionData
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_INNER_NUM
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.endpoint.features import SQL_FILTERS
from rmqtools.policy.subscription import SQL92, TAG, build_subscription, matches_tags
from rmqtools.protocol.messages.inner_batch import is_inner_batch
from rmqtools.protocol.wire.bodies import format_body
from rmqtools.protocol.wire.command import RemotingCommand


def read_filter(topic: str, *, tags: Collection[str] = (), sql: str | None = None) -> SubscriptionData | None:
    """Return the subscription that a read's filter means; None: no filter.

    Raises:
        ConfigError: both tags and a condition, or a condition that is empty.
    """
    if tags and sql is not None:
        raise ConfigError(
            f"both tags={sorted(tags)} and sql={sql!r}: give one; TAGS may stand in a condition"
        )
    if sql is not None:
        return build_subscription(topic, sql, expression_type=SQL92)
    return build_subscription(topic, "||".join(sorted(tags))) if tags else None


async def filter_at_broker(
    client: ClientCore, queue: MessageQueue, wanted: SubscriptionData | None
) -> SubscriptionData | None:
    """Return the filter that a queue's broker applies; None: none, also where it holds stored batches.

    Raises:
        UnsupportedError: a condition, and the server is a proxy; proxies check no conditions.
        BrokerError: the condition is invalid, or the broker does not filter by conditions.
        ConfigError: a condition on a queue that holds stored batches.
        RemotingError: no answer within ``request_timeout``.
    """
    if wanted is None:
        return None
    await _check_condition(client, queue, wanted)
    timeout = client.config.request_timeout
    asked = await look_up(lambda: client.queue_types.filter_at_broker(queue, wanted), timeout=timeout)
    return None if asked.sub_string == SUB_ALL else asked


def is_wanted(message: MessageExt, wanted: SubscriptionData) -> bool:
    """Return whether a message has one of the tags, compared by text: brokers compare hash codes.

    A stored batch that cannot be unwrapped is wanted: the tags of its messages are unknown.
    """
    if not wanted.tags_set or matches_tags(wanted, message.tags):  # without tags no property is decoded
        return True
    return is_inner_batch(message.sys_flag) and PROPERTY_INNER_NUM in message.properties


async def _check_condition(client: ClientCore, queue: MessageQueue, wanted: SubscriptionData) -> None:
    """Ask the broker of a queue to check a condition.

    The check is necessary: a broker answers pulls with an invalid condition (``a <``) with all messages.
    Source of the rule: ConsumerFilterManager.build, ExpressionMessageFilter (broker).
    """
    if wanted.expression_type == TAG:
        return
    client.endpoint.require(SQL_FILTERS)
    body = CheckClientRequestBody(
        client_id=client.client_id, group=client.read_group, subscription_data=wanted
    )
    command = RemotingCommand(RequestCode.CHECK_CLIENT_CONFIG, body=format_body(body))

    async def ask() -> None:
        await client.remoting.invoke_ok(client.routes.reading_addr(queue).broker_addr, command)

    await look_up(ask, timeout=client.config.request_timeout)
