"""The blocking Admin, written by ``python -m tools.blocking_classes``.

Change the class of :mod:`rmqtools.aio` instead, and run the program again. One file because it is one class.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, Unpack

from rmqtools.errors import RemotingError, RocketMQError
from rmqtools.model.block import CorruptBody
from rmqtools.model.broker_view import BrokerBacklog, BrokerState, NameServerState
from rmqtools.model.group import (
    ConsumerConnection,
    ConsumeStats,
    MessageRequestMode,
    ProducerInfo,
    TopicStatsTable,
)
from rmqtools.model.group_config import GroupSettings, SubscriptionGroupConfig
from rmqtools.model.group_view import (
    DEFAULT_LIMITS,
    DeadLetters,
    GroupLimits,
    GroupView,
    MessageTrack,
    QueueProgress,
)
from rmqtools.model.message import MessageExt
from rmqtools.model.message_story import MessageStory
from rmqtools.model.queue import MessageQueue, QueueRange
from rmqtools.model.route import ClusterInfo, Perm, TopicConfig, TopicRouteData
from rmqtools.model.running_info import ConsumerRunningInfo
from rmqtools.model.topic_type import TopicMessageType, TopicTypeName
from rmqtools.policy.allocate.pins import Pins
from rmqtools.policy.broker_check import ClusterCheck
from rmqtools.policy.group_check import GroupCheck
from rmqtools.sync.handwritten.admin import BlockingAdmin

_FOREVER_MS = 2**63 - 1  # Long.MAX_VALUE
_NO_ATTRIBUTES: Mapping[str, str | None] = {}


class Admin(BlockingAdmin):
    """Queries and changes of topics, groups and brokers.

    Made from settings, or on a running :class:`Client`, which stays open when this is closed.

    Every method raises ``RemotingError`` if no answer comes within ``request_timeout`` and
    ``BrokerError`` if a server refuses.

    Safe to share between threads.

    Args:
        config: the settings, or the client.
        partial: leave masters that do not answer out of the results of requests that only read, instead of
            raising: one hung broker does not hide the rest. :attr:`missing_brokers` names them. This object
            does not ask them again: for that, make another one, on the same client. If no master answers,
            or a change does not reach every master, the error is raised.
    """

    __module__ = "rmqtools"

    def fetch_cluster_info(self) -> ClusterInfo:
        """Return all brokers that the name server knows, by name and by cluster."""
        return self._bridge.run(lambda: self._admin.fetch_cluster_info())

    def fetch_clocks(self) -> dict[str, float]:
        """Return how many seconds the clock of each broker is ahead of this machine's, by broker name.

        Estimated from answers, to about a second, at most once a minute. Negative: it is behind; 0.0: the
        clocks may be equal. Brokers whose answers have no time are left out.
        """
        return self._bridge.run(lambda: self._admin.fetch_clocks())

    def fetch_broker_runtime_info(self, broker_addr: str) -> dict[str, str]:
        """Return a broker's statistics by name, as text (GET_BROKER_RUNTIME_INFO)."""
        return self._bridge.run(lambda: self._admin.fetch_broker_runtime_info(broker_addr))

    def fetch_broker_config(self, broker_addr: str) -> dict[str, str]:
        """Return the settings of a running broker by name, as text (GET_BROKER_CONFIG)."""
        return self._bridge.run(lambda: self._admin.fetch_broker_config(broker_addr))

    def update_broker_config(self, broker_addr: str, settings: Mapping[str, str]) -> None:
        """Change settings of a running broker. Not all take effect before its next start."""
        self._bridge.run(lambda: self._admin.update_broker_config(broker_addr, settings))

    def fetch_read_only_brokers(self) -> list[str]:
        """Return the brokers that routes show as not writable, sorted.

        Either :meth:`forbid_writing` was called, or ``brokerPermission`` of the broker lacks the write bit.
        """
        return self._bridge.run(lambda: self._admin.fetch_read_only_brokers())

    def fetch_brokers(self, *, timeout: float = 10.0) -> list[BrokerState]:
        """Ask every server of every broker for its statistics; one that gives none has its error.

        Args:
            timeout: seconds for all of it; a server that has not answered by then has an error.

        Returns:
            A state for each master and each slave, by broker name and broker id.

        Raises:
            RemotingError: no name server answers.
        """
        return self._bridge.run(lambda: self._admin.fetch_brokers(timeout=timeout))

    def fetch_name_servers(self, *, timeout: float = 10.0) -> list[NameServerState]:
        """Ask every name server of the settings for its brokers; one that does not answer has its error.

        Args:
            timeout: seconds for all of it.

        Returns:
            A state for each, in the order of the settings.
        """
        return self._bridge.run(lambda: self._admin.fetch_name_servers(timeout=timeout))

    def forbid_writing(self, broker_name: str) -> None:
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
        self._bridge.run(lambda: self._admin.forbid_writing(broker_name))

    def allow_writing(self, broker_name: str) -> None:
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
        self._bridge.run(lambda: self._admin.allow_writing(broker_name))

    def fetch_broker_backlog(
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
        return self._bridge.run(
            lambda: self._admin.fetch_broker_backlog(broker_name, topics=topics, groups=groups)
        )

    def fetch_topic_list(self) -> list[str]:
        """Return the names of all topics, sorted; system topics included.

        With a ``namespace`` in the settings: only the topics of that namespace, without its prefix, as every
        other method takes them.
        """
        return self._bridge.run(lambda: self._admin.fetch_topic_list())

    def fetch_route(self, topic: str) -> TopicRouteData:
        """Return a topic's route: its brokers and how many queues each of them has.

        Raises:
            TopicNotFoundError: no name server has a route of it.
        """
        return self._bridge.run(lambda: self._admin.fetch_route(topic))

    def create_topic(
        self,
        topic: str,
        *,
        read_queue_nums: int = 8,
        write_queue_nums: int = 8,
        perm: Perm = Perm.READ | Perm.WRITE,
        cluster_name: str | None = None,
        broker_names: Sequence[str] | None = None,
        message_type: TopicMessageType | TopicTypeName | None = None,
        attributes: Mapping[str, str | None] = _NO_ATTRIBUTES,
    ) -> None:
        """Create a topic, or change one that exists, and wait until the route shows it.

        Args:
            topic: its name.
            read_queue_nums: queues per broker that clients read.
            write_queue_nums: queues per broker that clients send to.
            perm: the operations that clients may use.
            cluster_name: only on the masters of this cluster; None: of all clusters.
            broker_names: only on these brokers; None: on all.
            message_type: which messages a 5.x proxy lets into the topic; None: as it was, NORMAL for a
                new one. Brokers reached directly take all messages.
            attributes: more attributes of a 5.x topic by name, e.g. ``{"cleanup.policy": "COMPACTION"}``;
                None as a value removes one. Brokers refuse names they do not know.

        Raises:
            MessageRejectedError: the name is not valid; nothing was sent.
            ConfigError: no such type, or a text that attributes cannot hold; nothing was sent.
            RemotingTimeoutError: created, but not in the route after ``request_timeout``.
        """
        self._bridge.run(
            lambda: self._admin.create_topic(
                topic,
                read_queue_nums=read_queue_nums,
                write_queue_nums=write_queue_nums,
                perm=perm,
                cluster_name=cluster_name,
                broker_names=broker_names,
                message_type=message_type,
                attributes=attributes,
            )
        )

    def delete_topic(self, topic: str, *, cluster_name: str | None = None) -> None:
        """Delete a topic with all its messages, on brokers and name servers. No error if it is absent.

        Raises:
            RocketMQError: no name server knows the cluster, or any master: nothing was deleted.
            RemotingError: a broker or name server does not answer. The topic may be deleted on some: call it
                again.
        """
        self._bridge.run(lambda: self._admin.delete_topic(topic, cluster_name=cluster_name))

    def fetch_topic_configs(self, topic: str) -> dict[str, TopicConfig]:
        """Return a topic's settings by broker name: queues, permission, message type and other attributes.

        Raises:
            TopicNotFoundError: no name server has a route of it, or no broker has the topic.
        """
        return self._bridge.run(lambda: self._admin.fetch_topic_configs(topic))

    def fetch_topic_stats(self, topic: str) -> TopicStatsTable:
        """Return first and last offset of each queue of a topic, and the time of its last message.

        Queues of brokers without a master are missing. ``topic_put_tps`` is the rate of all brokers together.

        Raises:
            TopicNotFoundError: no name server has a route of it, or no broker has the topic.
        """
        return self._bridge.run(lambda: self._admin.fetch_topic_stats(topic))

    def fetch_subscribe_queues(self, topic: str) -> list[MessageQueue]:
        """Return the queues of a topic that can be read, sorted. Fetches the route again.

        Raises:
            TopicNotFoundError: there is no such topic.
            PermissionDeniedError: the topic may not be read.
        """
        return self._bridge.run(lambda: self._admin.fetch_subscribe_queues(topic))

    def fetch_publish_queues(self, topic: str) -> list[MessageQueue]:
        """Return the queues of a topic that can be sent to, in round-robin order. Fetches the route again.

        Raises:
            TopicNotFoundError: there is no such topic.
            PermissionDeniedError: the topic may not be written.
        """
        return self._bridge.run(lambda: self._admin.fetch_publish_queues(topic))

    def min_offset(self, queue: MessageQueue) -> int:
        """Return the first queue offset that still has a message."""
        return self._bridge.run(lambda: self._admin.min_offset(queue))

    def max_offset(self, queue: MessageQueue) -> int:
        """Return one more than the last queue offset that can be read; 0 if there is no such queue.

        The request goes to the queue's master: a slave may lack the last messages.
        A broker acknowledges a message some milliseconds before its queue shows it: see
        :meth:`await_readable`.
        """
        return self._bridge.run(lambda: self._admin.max_offset(queue))

    def await_readable(self, max_offsets: Mapping[MessageQueue, int], *, timeout: float = 10.0) -> None:
        """Wait until queues show the acknowledged messages.

        Args:
            max_offsets: per queue, what :meth:`max_offset` must reach: the last acknowledged message's
                ``queue_offset`` plus one.
            timeout: seconds for all of them together.

        Raises:
            RemotingTimeoutError: a queue did not show it in time.
        """
        self._bridge.run(lambda: self._admin.await_readable(max_offsets, timeout=timeout))

    def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """Return the offset of the first message stored at or after a time (ms since 1970); else the end."""
        return self._bridge.run(lambda: self._admin.search_offset(queue, timestamp_ms))

    def fetch_consumer_offsets(self, group: str, topic: str) -> dict[MessageQueue, int | None]:
        """Return the consumer offset of a group for each queue of a topic.

        Returns:
            For every queue that can be read, sorted, the offset the group reads next. None: the group has
            no offset yet, and its first member starts where its own ``consume_from`` says.

        Raises:
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be read.
        """
        return self._bridge.run(lambda: self._admin.fetch_consumer_offsets(group, topic))

    def update_consumer_offset(self, group: str, queue: MessageQueue, offset: int) -> None:
        """Store a group's consumer offset for one queue. The broker creates a group it does not know.

        Running members keep the offset they have in memory and overwrite this one: use
        :meth:`reset_offsets` for a group that is consuming.

        Args:
            group: its name.
            queue: which queue.
            offset: the offset it reads next; not checked against the offsets of the queue.

        Raises:
            MessageRejectedError: a group name that brokers refuse; nothing was sent.
            RocketMQError: the broker ignored it, because the offset was reset and no member has pulled since.
        """
        self._bridge.run(lambda: self._admin.update_consumer_offset(group, queue, offset))

    def reset_offsets(self, group: str, topic: str, timestamp_ms: int) -> dict[MessageQueue, int]:
        """Move a group's offsets of a topic to the first messages stored at or after a time (ms since 1970).

        Brokers 5.x move the offsets themselves, also for running members; older ones ask the members to.

        Returns:
            The new offset of each queue.

        Raises:
            BrokerError: SUBSCRIPTION_GROUP_NOT_EXIST: no such group.
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be read.
        """
        return self._bridge.run(lambda: self._admin.reset_offsets(group, topic, timestamp_ms))

    def reset_queue_offset(self, group: str, queue: MessageQueue, offset: int) -> None:
        """Move a group's offset of one queue, also while members consume it (brokers 5.1 and newer).

        The broker reports the offset to the member's next pull, and ignores commits until then.

        Args:
            group: its name.
            queue: which queue.
            offset: the offset it reads next: one more than that of a message to skip.

        Raises:
            UnsupportedError: the broker is older than 5.1.0, or has ``useServerSideResetOffset=false``: it
                would move all queues of the topic; nothing was sent.
            BrokerError: SUBSCRIPTION_GROUP_NOT_EXIST: no such group; SYSTEM_ERROR: no such offset.
            TopicNotFoundError: there is no such topic.

        Source of the rule: AdminBrokerProcessor.resetOffset (broker 5.5.0).
        """
        self._bridge.run(lambda: self._admin.reset_queue_offset(group, queue, offset))

    def fetch_consume_stats(self, group: str, topic: str | None = None) -> ConsumeStats:
        """Return a group's consumer offsets and the queues' last offsets, as the brokers report them.

        A queue without a consumer offset shows 0 here; :meth:`fetch_consumer_offsets` shows None.

        Args:
            group: its name.
            topic: only this one; None: every topic the group has an offset for. While members run, only
                the topics they subscribe to.
        """
        return self._bridge.run(lambda: self._admin.fetch_consume_stats(group, topic))

    def fetch_group_list(self) -> list[str]:
        """Return the names of all groups that a master has settings of, sorted; RocketMQ's own included."""
        return self._bridge.run(lambda: self._admin.fetch_group_list())

    def has_group(self, group: str, queue: MessageQueue) -> bool:
        """Return whether the master of a queue has a group.

        Fetches the names of all its groups: a request for the settings of one group creates it (5.5.0).

        Raises:
            TopicNotFoundError: the queue's topic has no route.
        """
        return self._bridge.run(lambda: self._admin.has_group(group, queue))

    def fetch_group_configs(self, group: str) -> dict[str, SubscriptionGroupConfig]:
        """Return a group's settings by broker name; brokers that do not have the group are left out.

        Fetches the settings of all groups: a request for those of one group creates it (5.5.0).
        """
        return self._bridge.run(lambda: self._admin.fetch_group_configs(group))

    def fetch_all_group_configs(self) -> dict[str, dict[str, SubscriptionGroupConfig]]:
        """Return the settings of all groups by group and broker name, sorted; RocketMQ's own included."""
        return self._bridge.run(lambda: self._admin.fetch_all_group_configs())

    def create_group(self, group: str, **settings: Unpack[GroupSettings]) -> None:
        """Create a group on all masters, or change one that exists: settings not given stay as they are.

        A new group gets their defaults. With more retry queues than before, the retry topic of a group gets
        them too: members could otherwise not read the messages that brokers store in them.

        Args:
            group: its name.
            settings: see :class:`rmqtools.group.GroupSettings`, e.g. ``retry_max_times=3``.

        Raises:
            MessageRejectedError: a name that brokers refuse; nothing was sent.
            ConfigError: an unknown setting, or a number below 0; nothing was sent.
        """
        self._bridge.run(lambda: self._admin.create_group(group, **settings))

    def set_message_request_mode(
        self,
        topic: str,
        group: str,
        mode: MessageRequestMode | Literal["PULL", "POP"],
        *,
        pop_share_queue_num: int = 0,
    ) -> None:
        """Switch a group between pulling and popping a topic (brokers 5.x), from the next rebalance on.

        Args:
            topic: which topic.
            group: which group.
            mode: PULL or POP.
            pop_share_queue_num: for POP, how many other members also pop a member's queues; 0 or less:
                every member pops all queues.

        Raises:
            ConfigError: no such mode; nothing was sent.
        """
        self._bridge.run(
            lambda: self._admin.set_message_request_mode(
                topic, group, mode, pop_share_queue_num=pop_share_queue_num
            )
        )

    def delete_group(self, group: str, *, clean_offset: bool = False) -> None:
        """Delete a group's settings on all brokers. No error if it does not exist.

        Args:
            group: its name.
            clean_offset: delete its consumer offsets too.
        """
        self._bridge.run(lambda: self._admin.delete_group(group, clean_offset=clean_offset))

    def fetch_group(
        self, group: str, *, ages: bool = False, limits: GroupLimits = DEFAULT_LIMITS
    ) -> GroupView:
        """Return everything about a group: members, the queues each says it owns, offsets and lag.

        A member that does not answer has its ``error`` set. Members through a proxy are those whose
        heartbeats of the last minute can be read from the topic of the proxies. A broker that does not answer
        raises; with ``partial`` it is in ``silent_brokers``.

        Args:
            group: its name.
            ages: whether to read the first message not consumed of each queue, for its ``oldest_ms``.
            limits: from when on a member counts as stuck: such members are looked at more closely.
        """
        return self._bridge.run(lambda: self._admin.fetch_group(group, ages=ages, limits=limits))

    def fetch_progress(
        self, group: str, *, stats: ConsumeStats | None = None, connection: ConsumerConnection | None = None
    ) -> dict[MessageQueue, QueueProgress]:
        """Return a group's progress on each queue, sorted; cheaper than :meth:`fetch_group`.

        The queues are those that can be read of every topic that members subscribe to, or else that the
        group has an offset for. Where nothing was committed yet, all stored messages count as not consumed.

        Args:
            group: its name.
            stats: the answer of :meth:`fetch_consume_stats`; None: it is fetched.
            connection: the answer of :meth:`fetch_consumer_connection`; None: it is fetched.
        """
        return self._bridge.run(lambda: self._admin.fetch_progress(group, stats=stats, connection=connection))

    def fetch_dead_letters(self, group: str) -> DeadLetters:
        """Return how many dead letters a group has, and when the last one was stored."""
        return self._bridge.run(lambda: self._admin.fetch_dead_letters(group))

    def fetch_ages(self, progress: Mapping[MessageQueue, QueueProgress]) -> dict[MessageQueue, QueueProgress]:
        """Return progress with the ``oldest_ms`` of queues that are behind.

        Reads the first message not consumed of each.

        Args:
            progress: as of :meth:`fetch_progress`.
        """
        return self._bridge.run(lambda: self._admin.fetch_ages(progress))

    def fetch_topic_groups(self, topic: str) -> list[str]:
        """Return the groups that have members subscribed to a topic, or offsets of it, sorted."""
        return self._bridge.run(lambda: self._admin.fetch_topic_groups(topic))

    def fetch_consumer_connection(self, group: str) -> ConsumerConnection:
        """Return the members of a group and their subscriptions, collected from all brokers.

        Brokers know a member at the latest 30 s after its start, and for 2 minutes after it was killed.

        Returns:
            Members by client id, each once; no members if no broker knows one.
        """
        return self._bridge.run(lambda: self._admin.fetch_consumer_connection(group))

    def fetch_consumer_ids(self, group: str) -> list[str]:
        """Return the client ids of a group's members, collected from all brokers, in Java's order."""
        return self._bridge.run(lambda: self._admin.fetch_consumer_ids(group))

    def fetch_producers(self) -> dict[str, tuple[ProducerInfo, ...]]:
        """Return the producers that brokers know, by producer group; each once, by client id.

        A broker knows a producer that has sent to it, from its heartbeat until its connection ends. It does
        not know to which topics: ``MessageExt.born_host`` shows where messages came from.
        """
        return self._bridge.run(lambda: self._admin.fetch_producers())

    def fetch_running_info(self, group: str, client_id: str, *, stacks: bool = False) -> ConsumerRunningInfo:
        """Return a member's own report: settings, subscriptions, queues. Its broker forwards the request.

        Args:
            group: its group.
            client_id: its client id.
            stacks: also, as ``jstack``, the stacks of all threads of its process; a member of rmqtools
                adds the tasks of its event loop.

        Raises:
            BrokerError: no broker has a connection to the member, or the member did not answer the broker.
            RemotingTimeoutError: no answer within ``request_timeout``; a broker gives a member 10 s.
        """
        return self._bridge.run(lambda: self._admin.fetch_running_info(group, client_id, stacks=stacks))

    def view_message(self, offset_msg_id: str) -> MessageExt:
        """Return the message with an offset message id: address and place in the commit log, as hex digits.

        If its body cannot be read, ``body`` raises a :class:`rmqtools.errors.CorruptBodyError`.

        Raises:
            MessageRejectedError: not 32 or 56 hex digits, or a port of 0; nothing was sent.
            BrokerError: there is no message at that place: it has expired, or the id is another broker's.
            RemotingConnectError: there is no broker at the address of the id.
        """
        return self._bridge.run(lambda: self._admin.view_message(offset_msg_id))

    def query_messages(
        self,
        topic: str,
        key: str,
        *,
        unique: bool = False,
        begin_ms: int = 0,
        end_ms: int = _FOREVER_MS,
        max_num: int = 64,
    ) -> list[MessageExt]:
        """Find messages of a topic in the brokers' key index, which lags behind sends by some milliseconds.

        Args:
            topic: the topic.
            key: one of the message's keys; with ``unique``, its unique key (the ``msg_id`` of its result).
            unique: whether ``key`` is a unique key.
            begin_ms: only messages stored at or after this time, in milliseconds since 1970.
            end_ms: only messages stored at or before this time.
            max_num: the most messages to return.

        Returns:
            The messages, oldest first; none if no broker has one. Where a body cannot be read, ``body``
            raises a :class:`rmqtools.errors.CorruptBodyError`, which names queue and queue offset.

        Raises:
            TopicNotFoundError: there is no such topic.

        Source of the rule: MQAdminImpl.queryMessage (Java client).
        """
        return self._bridge.run(
            lambda: self._admin.query_messages(
                topic, key, unique=unique, begin_ms=begin_ms, end_ms=end_ms, max_num=max_num
            )
        )

    def query_all_messages(
        self,
        topic: str,
        key: str,
        *,
        unique: bool = False,
        begin_ms: int = 0,
        end_ms: int = _FOREVER_MS,
        corrupt_body: CorruptBody = "fail",
    ) -> list[MessageExt]:
        """Find every message of a topic with a key, however many there are; see :meth:`query_messages`.

        A broker returns at most 64 messages, or 32 for a unique key: older ones are requested by their time.

        Args:
            topic: the topic.
            key: one of the message's keys; with ``unique``, its unique key.
            unique: whether ``key`` is a unique key.
            begin_ms: only messages stored at or after this time, in milliseconds since 1970.
            end_ms: only messages stored at or before this time.
            corrupt_body: handling of a message whose body cannot be read, see :meth:`read_messages`.

        Returns:
            The messages, by broker, queue and offset.

        Raises:
            ConfigError: a broker has so many messages with this key in one second that it cannot return all.
            TopicNotFoundError: there is no such topic.
            CorruptBodyError: a body that cannot be read; the text names queue and queue offset.
        """
        return self._bridge.run(
            lambda: self._admin.query_all_messages(
                topic, key, unique=unique, begin_ms=begin_ms, end_ms=end_ms, corrupt_body=corrupt_body
            )
        )

    def fetch_message_track(self, message: MessageExt) -> list[MessageTrack]:
        """Return whether each group of a message's topic has consumed it, by the groups' consumer offsets.

        An offset shows what was committed: a message whose listener failed counts as consumed, because its
        group has it in the retry topic. Groups that pop have no offset to compare.

        Args:
            message: from :meth:`view_message` or :meth:`query_messages`; ``broker_name`` must be set.
        """
        return self._bridge.run(lambda: self._admin.fetch_message_track(message))

    def fetch_message_stories(
        self,
        key: str,
        *,
        topic: str | None = None,
        trace_topic: str = "RMQ_SYS_TRACE_TOPIC",
        max_num: int = 8,
    ) -> list[MessageStory]:
        """Return the lives of the messages with a key: sends, copies, deliveries, retries, dead letters.

        Stored copies come from the brokers' key index, in the message's topic, in its groups' retry and
        dead-letter topics and in the topics of delays. Sends and deliveries come from the trace topic: only
        clients with ``enable_trace`` write them. What is not known is listed in each story.

        Args:
            key: a unique key (``msg_id``), an offset message id, or one of the keys of a message.
            topic: the topic; None: as a trace record of the producer says, or the offset message id.
            trace_topic: topic of the trace records.
            max_num: the most messages to return.

        Returns:
            The stories, those of older messages first; none if there is neither a message nor a record.

        Raises:
            ConfigError: the topic is not given, and records that should have it are missing or cannot be
                read; or ``max_num`` is less than 1.
            MessageRejectedError: the key is empty.
            TopicNotFoundError: there is no such topic.
            UnsupportedError: a proxy, which cannot look up messages.
        """
        return self._bridge.run(
            lambda: self._admin.fetch_message_stories(
                key, topic=topic, trace_topic=trace_topic, max_num=max_num
            )
        )

    def fetch_pins(self, group: str) -> Pins:
        """Return the pins of a group that are valid: the highest version that any name server has.

        Returns:
            They may have expired: see :meth:`rmqtools.allocate.Pins.at`. :data:`rmqtools.allocate.NO_PINS`
            if the group never had any.

        Raises:
            RocketMQError: no name server answered with valid data.
        """
        return self._bridge.run(lambda: self._admin.fetch_pins(group))

    def fetch_pin_copies(self, group: str) -> dict[str, Pins | RocketMQError]:
        """Return each name server's copy by its address, or the error (not raised) if it cannot be read."""
        return self._bridge.run(lambda: self._admin.fetch_pin_copies(group))

    def fetch_pin_groups(self) -> list[str]:
        """Return the groups that have pins, or had some before they were cleared.

        Raises:
            RocketMQError: no name server answered with valid data.
        """
        return self._bridge.run(lambda: self._admin.fetch_pin_groups())

    def set_pins(self, group: str, pins: Pins) -> Pins:
        """Pin a group. Writes the next version to every name server and reads it back.

        Members follow within about 10 s. Does not check whether they use the strategy PINS.

        Args:
            group: its name.
            pins: the pins to write; their version is ignored.

        Returns:
            The pins with their version.

        Raises:
            RocketMQError: some name servers did not store them; the text names each. Members obey the pins
                as soon as one name server has them: repeat the call when all answer.
        """
        return self._bridge.run(lambda: self._admin.set_pins(group, pins))

    def clear_pins(self, group: str, *, set_by: str = "") -> Pins:
        """Remove a group's pins by writing a newer, empty version: all members share again.

        Raises:
            RocketMQError: as :meth:`set_pins`.
        """
        return self._bridge.run(lambda: self._admin.clear_pins(group, set_by=set_by))

    def repair_pins(self, group: str) -> Pins | None:
        """Write a group's valid pins to every name server, so that they beat all copies written before.

        Use it if copies differ, cannot be parsed, or are ignored because of an impossible version.

        Returns:
            The written pins; None: all copies were equal, and nothing was written.

        Raises:
            RocketMQError: a name server does not answer: nothing was written. Or as :meth:`set_pins`.
        """
        return self._bridge.run(lambda: self._admin.repair_pins(group))

    def check_cluster(self, *, timeout: float = 10.0) -> ClusterCheck:
        """Ask every broker and every name server for its state, and return it with the problems.

        Args:
            timeout: seconds for all of it; a server that has not answered by then has an error.

        Raises:
            RemotingError: no name server answers.
        """
        return self._bridge.run(lambda: self._admin.check_cluster(timeout=timeout))

    def check_group(
        self, group: str, *, limits: GroupLimits = DEFAULT_LIMITS, ages: bool = False
    ) -> GroupCheck:
        """Return everything about a group with its problems, as ``rmqtools group check`` reports them.

        A group that no broker knows is one without members. See :meth:`fetch_group` for members and brokers
        that do not answer. What half of a rebalance shows, too (queues without an owner or with two,
        members without a queue or an answer), counts once it has lasted for five seconds: then this looks
        again before it returns, unless an earlier look of the same client has found it.

        Args:
            group: its name.
            limits: from when on a member counts as stuck, and a group as late.
            ages: whether to read the first message not consumed of each queue, for its ``oldest_ms``;
                always done if the limits have a ``max_age``.
        """
        return self._bridge.run(lambda: self._admin.check_group(group, limits=limits, ages=ages))

    @property
    def is_connected(self) -> bool:
        """True if the client is started and a broker can be reached: an answer for health probes.

        Sends nothing. The first request to a broker opens a connection. Members of groups, producers too,
        also connect with their heartbeats (every ``heartbeat_broker_interval``, 30 s) to the brokers of all
        topics they know, and connect again after a loss. A broker that answered no heartbeat does not count.
        """
        return self._admin.is_connected

    def update_name_server(self, name_server: str) -> None:
        """Use other name servers from now on; connections to brokers stay.

        Args:
            name_server: ``host:port``, several separated by ``;``.

        Raises:
            ConfigError: none is given, or one is no address.

        Source of the rule: MQClientAPIImpl.updateNameServerAddressList (Java client).
        """
        self._bridge.run(lambda: self._admin.update_name_server(name_server))

    @property
    def missing_brokers(self) -> Mapping[str, RemotingError]:
        """The masters that the results lack, by name, with the first error of each.

        Always empty without ``partial``: such an error is raised then.
        """
        return self._admin.missing_brokers

    def start(self) -> None:
        """Make the methods usable. Connections are made when needed.

        An interrupted start (Ctrl-C) closes it.
        """
        super().start()

    def close(self) -> None:
        """Close the connections, unless they are another client's. Every call waits until that is done.

        May be called at any time, in any state. Interrupting a call ends only its waiting.
        """
        super().close()

    def read_messages(
        self, range_: QueueRange, *, corrupt_body: CorruptBody = "fail"
    ) -> Iterator[list[MessageExt]]:
        """Read exactly the messages of a range, in order; see :meth:`rmqtools.Client.read_messages`.

        Yields:
            Up to 256 messages at a time, in the order of their offsets. Their topics include the
            namespace, as on the server.

        Raises:
            DataLossError: part of the range has expired or was never written; the text names the offsets.
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be read.
            CorruptBodyError: a body that cannot be read; the text names queue and queue offset.
        """
        return self._bridge.iterate(self._admin.read_messages(range_, corrupt_body=corrupt_body))
