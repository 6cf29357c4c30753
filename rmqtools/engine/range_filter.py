"""What of a topic a range read wants, and whether its broker can tell."""

from collections.abc import Collection

from rmqtools.engine.client import ClientCore
from rmqtools.engine.lookup import look_up
from rmqtools.engine.membership import CheckClientRequestBody
from rmqtools.errors import ConfigError
from rmqtools.model.codes import RequestCode
from rmqtools.model.group import SubscriptionData
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.subscription import SQL92, TAG, build_subscription
from rmqtools.protocol.bodies import format_body
from rmqtools.protocol.command import RemotingCommand


def read_filter(topic: str, *, tags: Collection[str] = (), sql: str | None = None) -> SubscriptionData | None:
    """What of a topic is wanted; None: everything.

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


async def check_filter(
    client: ClientCore, queue: MessageQueue, wanted: SubscriptionData, *, group: str
) -> None:
    """Let the broker of a queue look at a condition.

    It must be asked: a pull with a condition that cannot be read (``a <``) is answered with all messages.
    Source of the rule: ConsumerFilterManager.build, ExpressionMessageFilter (broker).

    Raises:
        BrokerError: it cannot be read, or the broker does not filter by conditions.
        RemotingError: nobody answered within ``request_timeout``.
    """
    if wanted.expression_type == TAG:
        return
    body = CheckClientRequestBody(client_id=client.client_id, group=group, subscription_data=wanted)
    command = RemotingCommand(RequestCode.CHECK_CLIENT_CONFIG, body=format_body(body))

    async def ask() -> None:
        await client.remoting.invoke_ok(client.routes.reading_addr(queue).broker_addr, command)

    await look_up(ask, timeout=client.config.request_timeout)
