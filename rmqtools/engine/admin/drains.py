"""Administration of brokers that shall be stopped: nothing more comes in, and what is there is consumed.

Source of the rules: RouteInfoManager.operateWritePermOfBroker (name server), AdminBrokerProcessor
(updateBrokerConfig, prepareRuntimeInfo), TransactionalMessageBridge, PopAckConstants (broker 5.5.0).
"""

import asyncio
from collections.abc import Collection

from rmqtools.engine.admin.broker_requests import fetch_read_only, fetch_runtime_info, update_settings
from rmqtools.engine.admin.groups import GroupAdmin
from rmqtools.errors import ConfigError, RemotingTimeoutError, RocketMQError
from rmqtools.model.broker_view import BrokerBacklog, BrokerState, GroupBacklog
from rmqtools.model.codes import ResponseCode
from rmqtools.model.names import CID_RMQ_SYS_PREFIX, HALF_TOPIC, SCHEDULE_TOPIC
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import ClusterInfo, Perm
from rmqtools.protocol.headers.group import GetConsumeStatsRequestHeader
from rmqtools.protocol.headers.topic import GetTopicStatsInfoRequestHeader, WipeWritePermOfBrokerRequestHeader
from rmqtools.protocol.wire.bodies import parse_consume_stats, parse_topic_stats
from rmqtools.protocol.wire.command import request
from rmqtools.unknown_name import unknown_name

_HALF_GROUP = f"{CID_RMQ_SYS_PREFIX}TRANS"
_REVIVE_TOPIC, _REVIVE_GROUP = "rmq_sys_REVIVE_LOG_", f"{CID_RMQ_SYS_PREFIX}REVIVE_GROUP"
_REVIVED_MS = 60_000  # after this time a broker has delivered again what nobody acknowledged
_LOOK_PAUSE = 0.02  # seconds between checks for an expected change


class DrainAdmin(GroupAdmin):
    """The methods about brokers that shall be stopped; :class:`rmqtools.aio.Admin` has them all."""

    async def forbid_writing(self, broker_name: str) -> None:
        """Ask clients to send no more messages to a broker, at every name server.

        Producers see it with their next look at the route (``poll_name_server_interval``, 30 s). The broker
        itself still accepts messages: clients that ignore permissions send, and failed messages can
        be delivered again. A restart of the broker, or a change of one of its topics, allows writing again.

        Args:
            broker_name: its name.

        Raises:
            ConfigError: no such broker; nothing was sent.
            RemotingError: a name server does not answer; the others have been asked. Call it again.
        """
        await self._known_broker(broker_name)
        await self._client.name_server.change_each(
            WipeWritePermOfBrokerRequestHeader(broker_name=broker_name)
        )

    async def allow_writing(self, broker_name: str) -> None:
        """Undo :meth:`forbid_writing`, and wait until the route shows it.

        Sets the broker's ``brokerPermission`` to read and write, with which it registers its topics anew.
        Topics get their own permission back: ADD_WRITE_PERM_OF_BROKER would make all of them writable.

        Args:
            broker_name: its name.

        Raises:
            ConfigError: no such broker; nothing was sent.
            RocketMQError: the broker has no master now; nothing was sent.
            RemotingTimeoutError: the route does not show it after ``request_timeout``.
        """
        info = await self._known_broker(broker_name)
        if (addr := info.broker_addr_table[broker_name].broker_addrs.get(0)) is None:
            raise RocketMQError(f"broker {broker_name!r} has no master now: start it first")
        await update_settings(self._client, addr, {"brokerPermission": str(int(Perm.READ | Perm.WRITE))})
        deadline = self._client.clock.monotonic() + self._client.config.request_timeout
        while broker_name in await fetch_read_only(self._client):
            if self._client.clock.monotonic() > deadline:
                raise RemotingTimeoutError(
                    f"broker {broker_name!r} allows writing, but the route does not show it after "
                    f"{self._client.config.request_timeout} s"
                )
            await asyncio.sleep(_LOOK_PAUSE)

    async def fetch_broker_backlog(
        self, broker_name: str, *, topics: Collection[str], groups: Collection[str]
    ) -> BrokerBacklog:
        """Return what waits on a broker.

        Costs a request for each topic and several for each group.

        Args:
            broker_name: its name.
            topics: those whose new messages are counted.
            groups: those whose lag is counted; a group without offsets on the broker has none.

        Raises:
            ConfigError: no such broker.
            RocketMQError: the broker has no master now.
        """
        info = await self._known_broker(broker_name)
        data = info.broker_addr_table[broker_name]
        if (addr := data.broker_addrs.get(0)) is None:
            raise RocketMQError(f"broker {broker_name!r} has no master now: nothing can be asked")
        statistics = await fetch_runtime_info(self._client, addr)
        state = BrokerState(broker_name=broker_name, statistics=statistics)
        lags = {group: await self._backlog_of(group, broker_name) for group in groups}
        return BrokerBacklog(
            broker_name=broker_name,
            ends={topic: await self._end_of(addr, topic) for topic in topics},
            groups={group: each for group, each in lags.items() if each.lag > 0},
            delayed=await self._delayed(addr, state),
            timed=int((state.number("timerCongestNum") or 0) + (state.number("timerOffsetBehind") or 0)),
            half=sum((await self._lags(addr, _HALF_GROUP, HALF_TOPIC)).values()),
            popped=await self._popped(addr, f"{_REVIVE_TOPIC}{data.cluster}"),
        )

    async def _known_broker(self, broker_name: str) -> ClusterInfo:
        name_server = self._client.name_server
        info = await name_server.fetch_cluster_info(lambda info: broker_name in info.broker_addr_table)
        if broker_name not in info.broker_addr_table:
            unknown = unknown_name("broker", broker_name, list(info.broker_addr_table))
            raise ConfigError(f"{unknown}; asked: {', '.join(await name_server.addrs())}")
        return info

    async def _backlog_of(self, group: str, broker_name: str) -> GroupBacklog:
        connection = await self.fetch_consumer_connection(group)
        progress = await self.fetch_progress(group, connection=connection)
        here = [each.lag for queue, each in progress.items() if queue.broker_name == broker_name]
        return GroupBacklog(lag=sum(here), members=len(connection.connection_set))

    async def _end_of(self, addr: str, topic: str) -> int:
        header = GetTopicStatsInfoRequestHeader(topic=self._wire(topic))
        answer = await self._client.remoting.invoke(addr, request(header))
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            return 0
        stats = parse_topic_stats(self._client.remoting.checked(answer, header.code, addr).body)
        return sum(each.max_offset for each in stats.offset_table.values())

    async def _delayed(self, addr: str, state: BrokerState) -> int:
        """Add up the messages of all delay levels: what is stored less what ``scheduleMessageOffset_3`` has.

        A broker has no such statistic for a level of which it has delivered nothing yet.
        """
        header = GetTopicStatsInfoRequestHeader(topic=SCHEDULE_TOPIC)
        stats = parse_topic_stats((await self._client.remoting.invoke_ok(addr, request(header))).body)
        total = 0
        for queue, offsets in stats.offset_table.items():  # one for each level, from level 1 on
            text = state.statistics.get(f"scheduleMessageOffset_{queue.queue_id + 1}", "")
            delivered = int(text.partition(",")[0] or 0)
            total += max(offsets.max_offset - max(delivered, offsets.min_offset), 0)
        return total

    async def _popped(self, addr: str, topic: str) -> int:
        """Return the entries of popped messages that the broker still goes through.

        Its offset stays before the acknowledgements of the last pop for ever, so old entries do not count.
        """
        answer = await self._client.remoting.invoke(
            addr, request(GetTopicStatsInfoRequestHeader(topic=topic))
        )
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:  # before 5.0
            return 0
        stats = parse_topic_stats(answer.body).offset_table
        lags = await self._lags(addr, _REVIVE_GROUP, topic)
        since_ms = self._client.clock.now_ms() - _REVIVED_MS
        return sum(
            lag
            for queue, lag in lags.items()
            if queue in stats and stats[queue].last_update_timestamp > since_ms
        )

    async def _lags(self, addr: str, group: str, topic: str) -> dict[MessageQueue, int]:
        """Return the lag of a broker's own group in one of its own topics; empty if it has no such topic."""
        header = GetConsumeStatsRequestHeader(consumer_group=group, topic=topic)
        stats = parse_consume_stats((await self._client.remoting.invoke_ok(addr, request(header))).body)
        return {
            queue: max(each.broker_offset - each.consumer_offset, 0)
            for queue, each in stats.offset_table.items()
        }
