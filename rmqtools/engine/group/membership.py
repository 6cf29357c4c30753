"""Membership in a consumer group: heartbeats announce the member, brokers list the other members.

Source of the rules: MQClientInstance.findConsumerIdList, checkClientInBroker (Java client). Ours: all members
ask the same broker, the first by name, where Java asks any. Brokers learn of a new member one by one, so
answers of different brokers would move queues back and forth. A list that has a client id twice is not
believed while another broker has one that has not (decision 0035).
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
from rmqtools.policy.allocate.member_list import FIRST_ENTRY, MemberList, has_doubles, own_entries
from rmqtools.policy.endpoint.features import SQL_FILTERS
from rmqtools.policy.subscription import TAG
from rmqtools.protocol.headers.group import (
    GetConsumerConnectionListRequestHeader,
    GetConsumerListByGroupRequestHeader,
)
from rmqtools.protocol.wire.bodies import format_body, parse_consumer_connection, parse_consumer_list
from rmqtools.protocol.wire.command import RemotingCommand, request, response

log = get_logger(__name__)

_ANNOUNCE_INTERVAL = 1.0  # seconds between checks for brokers that do not know this client (any more)
FORGOTTEN_DELAY = 0.5  # seconds until a broker that had forgotten this member is asked again
_START_PATIENCE = 3.0  # seconds that a start waits for brokers that do not answer


ListsByBroker = dict[str, tuple[str, ...] | None]
"""Lists of members by the brokers that gave them; None: this broker gave none."""


class Membership:
    """Membership of one client in one group. ``group`` is the wire name."""

    def __init__(self, client: ClientCore, group: str) -> None:
        self._client = client
        self._group = group
        self._announcer = Announcer(client)
        self._substitutes: dict[str, tuple[str, ...]] = {}  # by topic: the list believed in the last round
        self._reminded: dict[str, float] = {}  # address -> when a forgetful broker got a heartbeat
        self._shared_with: set[str] = set()  # addresses that the log has named

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

    async def remind(self, broker_name: str, addr: str) -> None:
        """Send a heartbeat to a broker that has forgotten this member; one for all its queues."""
        now = self._client.clock.monotonic()
        if now - self._reminded.get(addr, -FORGOTTEN_DELAY) >= FORGOTTEN_DELAY:
            self._reminded[addr] = now
            await self._client.send_heartbeat(broker_name, addr)

    async def leave(self) -> None:
        """Tell brokers that this member has left."""
        await self._announcer.close()
        if self._group in self._client.groups.consumers:
            await self._client.unregister_consumer(self._group)

    async def find_members(self, topic: str, told: ListsByBroker | None = None) -> MemberList | None:
        """Members of the group, from the first broker of the topic that lists each once; None: unknown.

        ``told``: what brokers have answered before; those in it are not asked, the others are added.
        """
        told = {} if told is None else told
        doubled: tuple[str, tuple[str, ...]] | None = None  # the first list with doubles, and its broker
        for name in self._brokers(topic):
            if name not in told:
                told[name] = await self._ask_members(name)
            ids = told[name]
            if ids is not None and not has_doubles(ids):
                return self._believe(topic, ids, instead_of=doubled and doubled[1])
            if ids is not None and doubled is None:
                doubled = name, ids
        self._substitutes.pop(topic, None)
        if doubled is None:
            return None
        name, ids = doubled
        return MemberList(ids, await self._own_entries(name, ids))

    def _believe(self, topic: str, ids: tuple[str, ...], *, instead_of: tuple[str, ...] | None) -> MemberList:
        """Return a list without doubles. One with other members than the doubled list waits for a round."""
        if instead_of is None or set(instead_of) == set(ids):
            self._substitutes.pop(topic, None)
            return MemberList(ids)
        is_settled = self._substitutes.get(topic) == ids
        self._substitutes[topic] = ids
        return MemberList(ids, is_settled=is_settled)

    def _brokers(self, topic: str) -> list[str]:
        route = self._client.routes.tables.routes.get(topic)
        return sorted(broker.broker_name for broker in route.broker_datas) if route else []

    async def _ask_members(self, broker_name: str) -> tuple[str, ...] | None:
        command = request(GetConsumerListByGroupRequestHeader(consumer_group=self._group))
        try:
            addr = self._client.routes.admin_addr(broker_name)
            answer = await self._client.remoting.invoke_ok(addr, command)
            return await parse_aside(parse_consumer_list, answer.body)
        except RocketMQError as error:
            log.info("members_not_told", group=self._group, broker=broker_name, reason=str(error))
            return None

    async def _own_entries(self, broker_name: str, ids: tuple[str, ...]) -> tuple[int, ...]:
        """Ask which connections the entries with this client's id are of."""
        client_id = self._client.client_id
        if ids.count(client_id) < 2:
            return FIRST_ENTRY
        command = request(GetConsumerConnectionListRequestHeader(consumer_group=self._group))
        try:
            addr = self._client.routes.admin_addr(broker_name)
            answer = await self._client.remoting.invoke_ok(addr, command)
            connections = parse_consumer_connection(answer.body).connection_set
        except RocketMQError as error:
            log.info("connections_not_told", group=self._group, broker=broker_name, reason=str(error))
            return tuple(range(ids.count(client_id)))
        addresses = [one.client_addr or "" for one in connections if one.client_id == client_id]
        self._warn_of_others(addresses)
        return own_entries(addresses, self._client.remoting.is_own_address)

    def _warn_of_others(self, addresses: list[str]) -> None:
        """Log once for each address with this client's id that is no socket of this client."""
        own = [addr for addr in addresses if self._client.remoting.is_own_address(addr)]
        for addr in set(addresses) - set(own) - self._shared_with:
            self._shared_with.add(addr)
            log.warning(
                "client_id_shared",
                group=self._group,
                client_id=self._client.client_id,
                other_addr=addr,
                own_addr=", ".join(own) or "not listed",
            )

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
        return self._client.routes.admin_addr(self._brokers(topic)[0])
