"""Membership in a consumer group: heartbeats announce the member, brokers list the other members.

Source of the rules: MQClientInstance.findConsumerIdList, checkClientInBroker (Java client). Ours: all members
ask the same broker, the first by name, where Java asks any. Brokers learn of a new member one by one, so
answers of different brokers would move queues back and forth.
"""

from collections.abc import Callable

from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.large_bodies import parse_aside
from rmqtools.engine.connection.refusals import HEARTBEAT
from rmqtools.engine.connection.send_heartbeats import Announcer
from rmqtools.errors import BrokerError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.group import CheckClientRequestBody, ConsumerData
from rmqtools.policy.endpoint.features import SQL_FILTERS
from rmqtools.policy.subscription import TAG
from rmqtools.protocol.headers import GetConsumerListByGroupRequestHeader
from rmqtools.protocol.wire.bodies import format_body, parse_consumer_list
from rmqtools.protocol.wire.command import RemotingCommand, request, response

log = get_logger(__name__)

_ANNOUNCE_INTERVAL = 1.0  # seconds between checks for brokers that do not know this client (any more)
_START_PATIENCE = 3.0  # seconds that a start waits for brokers that do not answer


class Membership:
    """Membership of one client in one group. ``group`` is the wire name."""

    def __init__(self, client: ClientCore, group: str) -> None:
        self._client = client
        self._group = group
        self._announcer = Announcer(client)

    async def join(self, data: ConsumerData, on_change: Callable[[], None]) -> None:
        """Announce the member; call ``on_change()`` whenever a broker reports that the members changed.

        Raises:
            BrokerError: every broker refuses the member for lack of permission.
        """

        async def changed(command: RemotingCommand, _: str) -> RemotingCommand:
            if command.ext_fields.get("consumerGroup") == self._group:
                on_change()
            return response(ResponseCode.SUCCESS, command.opaque)

        self._client.remoting.on_request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, changed)
        await self._check(data)
        self.update(data)
        await self._announcer.announce(_START_PATIENCE)
        self._check_permission()
        self._client.background.spawn_loop(
            "announce", lambda: self._announcer.announce_forever(_ANNOUNCE_INTERVAL)
        )

    def _check_permission(self) -> None:
        brokers = set(self._client.brokers().values())
        if (refused := self._client.refusals.of_all(HEARTBEAT, brokers)) is not None:
            raise BrokerError(refused.code, refused.remark, refused.addr) from refused

    def update(self, data: ConsumerData) -> None:
        """Change the data that the next heartbeats send."""
        self._client.groups.consumers[self._group] = data

    async def leave(self) -> None:
        """Tell brokers that this member has left."""
        await self._announcer.close()
        if self._group in self._client.groups.consumers:
            await self._client.unregister_consumer(self._group)

    async def find_members(self, topic: str) -> tuple[str, ...] | None:
        """Client ids of the group, from the first broker of the topic that answers; None: unknown."""
        route = self._client.routes.tables.routes.get(topic)
        names = sorted(broker.broker_name for broker in route.broker_datas) if route else []
        command = request(GetConsumerListByGroupRequestHeader(consumer_group=self._group))
        for name in names:
            try:
                addr = self._client.routes.admin_addr(name)
                answer = await self._client.remoting.invoke_ok(addr, command)
                return await parse_aside(parse_consumer_list, answer.body)
            except RocketMQError as error:
                log.info("members_not_told", group=self._group, broker=name, reason=str(error))
        return None

    async def _check(self, data: ConsumerData) -> None:
        """Ask a broker to check SQL92 subscriptions: it may not support conditions, or refuse this one.

        Raises:
            UnsupportedError: the server is a proxy; proxies check no conditions.
            BrokerError: the broker refused, with its reason.
            ConfigError: the topic's queues hold stored batches.
        """
        for subscription in data.subscription_data_set:
            topic = subscription.topic
            if subscription.expression_type != TAG:
                self._client.endpoint.require(SQL_FILTERS)
            if subscription.expression_type == TAG or topic not in self._client.routes.tables.routes:
                continue  # without a route there is no broker to ask; a wrong condition fails at the pulls
            body = CheckClientRequestBody(
                client_id=self._client.client_id, group=self._group, subscription_data=subscription
            )
            command = RemotingCommand(RequestCode.CHECK_CLIENT_CONFIG, body=format_body(body))
            await self._client.remoting.invoke_ok(self._some_addr(topic), command)
            for queue in self._client.routes.tables.subscribe[topic][:1]:
                await self._client.queue_types.filter_at_broker(queue, subscription)

    def _some_addr(self, topic: str) -> str:
        route = self._client.routes.tables.routes[topic]
        return self._client.routes.admin_addr(min(broker.broker_name for broker in route.broker_datas))
