"""Being a member of a consumer group: brokers know it by its heartbeats, and tell who the others are.

Source of the rules: MQClientInstance.findConsumerIdList, checkClientInBroker (Java client). Ours: all members
ask the same broker, the first by name, where Java asks any: while brokers learn of a newcomer one after the
other, answers of different brokers would move queues to and fro.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rmqtools.engine.announce import Announcer
from rmqtools.engine.client import ClientCore
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.group import ConsumerData, SubscriptionData
from rmqtools.policy.subscription import TAG
from rmqtools.protocol.bodies import format_body, parse_consumer_list
from rmqtools.protocol.command import RemotingCommand, request, response
from rmqtools.protocol.headers import GetConsumerListByGroupRequestHeader

log = get_logger(__name__)

_ANNOUNCE_INTERVAL = 1.0  # seconds between two looks for brokers that do not know this client (any more)
_START_PATIENCE = 3.0  # seconds that a start waits for brokers that do not answer


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckClientRequestBody:
    """CHECK_CLIENT_CONFIG: a subscription the broker is to look at."""

    client_id: str
    group: str
    subscription_data: SubscriptionData
    namespace: str | None = None


class Membership:
    """One client's place in one group. ``group`` is the wire name."""

    def __init__(self, client: ClientCore, group: str) -> None:
        self._client = client
        self._group = group
        self._announcer = Announcer(client)

    async def join(self, data: ConsumerData, on_change: Callable[[], None]) -> None:
        """Tell the brokers; ``on_change()`` is called whenever one says that the members have changed."""

        async def changed(command: RemotingCommand, _: str) -> RemotingCommand:
            if command.ext_fields.get("consumerGroup") == self._group:
                on_change()
            return response(ResponseCode.SUCCESS, command.opaque)

        self._client.remoting.on_request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, changed)
        await self._check(data)
        self.update(data)
        await self._announcer.announce(_START_PATIENCE)
        self._client.spawn("announce", self._announcer.announce_forever(_ANNOUNCE_INTERVAL))

    def update(self, data: ConsumerData) -> None:
        """What heartbeats say from now on."""
        self._client.groups.consumers[self._group] = data

    async def leave(self) -> None:
        """Tell the brokers that this member is gone."""
        await self._announcer.close()
        if self._group in self._client.groups.consumers:
            await self._client.unregister_consumer(self._group)

    async def find_members(self, topic: str) -> tuple[str, ...] | None:
        """The client ids of the group, as the first broker of the topic that answers knows them."""
        route = self._client.routes.tables.routes.get(topic)
        names = sorted(broker.broker_name for broker in route.broker_datas) if route else []
        command = request(GetConsumerListByGroupRequestHeader(consumer_group=self._group))
        for name in names:
            try:
                addr = self._client.routes.admin_addr(name)
                answer = await self._client.remoting.invoke_ok(addr, command)
                return parse_consumer_list(answer.body)
            except RocketMQError as error:
                log.info("members_not_told", group=self._group, broker=name, reason=str(error))
        return None

    async def _check(self, data: ConsumerData) -> None:
        """Let a broker look at subscriptions by condition: it may not take any, or not these.

        Raises:
            BrokerError: with the broker's reason.
        """
        for subscription in data.subscription_data_set:
            topic = subscription.topic
            if subscription.expression_type == TAG or topic not in self._client.routes.tables.routes:
                continue  # without a route there is no broker to ask; the pulls will tell
            body = CheckClientRequestBody(
                client_id=self._client.client_id, group=self._group, subscription_data=subscription
            )
            command = RemotingCommand(RequestCode.CHECK_CLIENT_CONFIG, body=format_body(body))
            await self._client.remoting.invoke_ok(self._some_addr(topic), command)

    def _some_addr(self, topic: str) -> str:
        route = self._client.routes.tables.routes[topic]
        return self._client.routes.admin_addr(min(broker.broker_name for broker in route.broker_datas))
