"""A consumer group as an operator sees it: members, their queues, offsets, problems."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from rmqtools.model.broker_view import common_clock
from rmqtools.model.queue import MessageQueue
from rmqtools.model.record import record
from rmqtools.model.running_info import ConsumeStatus, ProcessQueueInfo

Subscription = tuple[str, str, str]
"""Topic, expression, type of the expression."""


@record
class BrokerSubscription:
    """The subscription by which a broker filters a topic for a group, and its time of creation in ms."""

    broker_name: str
    subscription: Subscription
    sub_version: int


@record
class WaitingQueue:
    """A queue that waits for a message whose listener call fails, and how often it has failed."""

    queue: MessageQueue
    queue_offset: int
    times: int


@record
class GroupMember:
    """One member, from the brokers' data and its own report.

    Attributes:
        client_id: its client id.
        addr: the address of its connection.
        language: the language of its client.
        version: the version it reports (``V5_5_0``), or the number that brokers have.
        rmqtools_version: the version of rmqtools that it runs; None: another client, or 0.2.0 and older.
        error: why there is no report of its own; the fields below then have no meaning.
        queues: the queues it owns now, those of the retry topic too.
        pops: those of the queues that it pops instead of pulling.
        strategy: its allocation strategy; None if it does not report one.
        pin_version: the version of the pins it uses; None: it uses no pins, or knows none yet.
        subscriptions: its subscriptions, without the retry topic.
        sub_versions: when it made each of them by its clock, in ms since 1970, by topic.
        orderly: whether it consumes in order, with locks; None if it does not report it.
        message_model: CLUSTERING or BROADCASTING; None if it does not report it.
        name_server: the name servers it uses, sorted; None if it does not report them.
        entries: its addresses in the list of each broker; more than one: see ``MEMBER_LISTED_AGAIN``.
        states: what it reports of each pulled queue.
        rates: its rates of each topic.
        longest_call: seconds that its longest running listener call has taken; None: not reported.
        last_error: the last error of a listener, with its time; None: none, or not reported.
        waiting: queues consumed in order that wait for a message that fails.
        fetched_ms: when the first fetched message of a queue was stored, in milliseconds since 1970; only of
            queues of which it has consumed nothing for a while.
        now_ms: the time of its machine when it reported; 0: not reported.
        clock: how many seconds the clock of its machine is ahead of this machine's, as far as it is known.
    """

    client_id: str
    addr: str = ""
    language: str | None = None
    version: str = ""
    rmqtools_version: str | None = None
    error: str | None = None
    queues: tuple[MessageQueue, ...] = ()
    pops: tuple[MessageQueue, ...] = ()
    strategy: str | None = None
    pin_version: int | None = None
    subscriptions: frozenset[Subscription] = frozenset()
    sub_versions: Mapping[str, int] = field(default_factory=dict)
    orderly: bool | None = None
    message_model: str | None = None
    name_server: str | None = None
    entries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    states: Mapping[MessageQueue, ProcessQueueInfo] = field(default_factory=dict)
    rates: Mapping[str, ConsumeStatus] = field(default_factory=dict)
    longest_call: float | None = None
    last_error: str | None = None
    waiting: tuple[WaitingQueue, ...] = ()
    fetched_ms: Mapping[MessageQueue, int] = field(default_factory=dict)
    now_ms: int = 0
    clock: float = 0.0

    @property
    def newest_ms(self) -> int:
        """The latest time in its report: the clock of its machine showed it, or more; 0: there is none."""
        times = (max(each.last_pull_timestamp, each.last_consume_timestamp) for each in self.states.values())
        return max(times, default=0)


@record
class ProxiedMember:
    """A member whose connection is to a proxy: brokers do not list it, so nobody can ask it for a report.

    Attributes:
        client_id: its client id.
        proxy: the proxy, ``ip:remoting port``.
    """

    client_id: str
    proxy: str


@record
class UnreadableQueues:
    """Queues that producers send to and that no consumer reads.

    Attributes:
        topic: their topic.
        broker_name: their broker.
        readable: how many queues are read, from queue 0 on.
        written: how many queues are sent to, or hold retried messages.
        messages: the messages in the others; None: not known.
    """

    topic: str
    broker_name: str
    readable: int
    written: int
    messages: int | None = None


@record
class QueueProgress:
    """The progress of a group on one queue.

    Attributes:
        max_offset: one more than the last message's.
        consumer_offset: the offset read next; None: nothing was committed yet.
        min_offset: the first message still stored; known only where nothing was committed.
        oldest_ms: when the first message not consumed was stored, in milliseconds since 1970; None: there is
            none, or it was not asked for.
    """

    max_offset: int
    consumer_offset: int | None
    min_offset: int = 0
    oldest_ms: int | None = None

    @property
    def lag(self) -> int:
        """The number of messages not consumed yet. If nothing was committed: all that are stored."""
        return self.max_offset - (self.consumer_offset or self.min_offset)


@record
class DeadLetters:
    """The dead letters of a group.

    Attributes:
        count: those that are stored.
        newest_ms: when the last one was stored, in milliseconds since 1970; 0: there never was any.
    """

    count: int = 0
    newest_ms: int = 0


@record
class GroupView:
    """A group at one moment. Members are asked one after the other, so it may show half of a rebalance.

    Attributes:
        group: its name.
        message_model: CLUSTERING or BROADCASTING; None without members.
        consume_type: how members fetch messages; None without members.
        members: by client id.
        progress: every queue of every topic that the group subscribes to or has offsets for, sorted.
        missing_topics: topics subscribed to that have no route.
        unreadable: queues of its topics that nobody can read.
        broker_subscriptions: what brokers filter by, without the retry topic.
        proxied: members that came through a proxy, by client id; they are not among ``members``.
        silent_brokers: masters that did not answer, by name, with the error; their queues are not in
            ``progress``. Always empty unless the administration is ``partial``.
        dead_letters: its messages that failed too often.
        now_ms: when it was looked at, in milliseconds since 1970; 0: unknown.
        clocks: how many seconds the clock of each broker is ahead of this machine's, by broker name.
    """

    group: str
    message_model: str | None = None
    consume_type: str | None = None
    members: tuple[GroupMember, ...] = ()
    progress: Mapping[MessageQueue, QueueProgress] = field(default_factory=dict)
    missing_topics: tuple[str, ...] = ()
    unreadable: tuple[UnreadableQueues, ...] = ()
    broker_subscriptions: tuple[BrokerSubscription, ...] = ()
    proxied: tuple[ProxiedMember, ...] = ()
    silent_brokers: Mapping[str, str] = field(default_factory=dict)
    dead_letters: DeadLetters = DeadLetters()
    now_ms: int = 0
    clocks: Mapping[str, float] = field(default_factory=dict)

    def now_at(self, broker_name: str = "") -> int:
        """Return the time of a broker when the group was looked at; by default that of most brokers."""
        ahead = self.clocks.get(broker_name, common_clock(self.clocks))
        return self.now_ms + round(ahead * 1000) if self.now_ms else 0

    def age(self, queue: MessageQueue) -> float | None:
        """Return the seconds since a queue's oldest message not consumed was stored; None: not known."""
        stored_ms = self.progress[queue].oldest_ms
        if stored_ms is None or not self.now_ms:
            return None
        return (self.now_at(queue.broker_name) - stored_ms) / 1000

    def owners(self, queue: MessageQueue) -> list[str]:
        """Return the client ids of the members that report a queue as theirs."""
        return [member.client_id for member in self.members if queue in member.queues]


@record
class GroupLimits:
    """From when on a member counts as stuck, and a group as late."""

    listener: float = 60.0
    """Seconds of one listener call, and of fetched messages of which none is consumed."""
    fetch: float = 60.0
    """Seconds without a fetch; a long poll takes up to 30 s."""
    dead_letter: float = 600.0
    """Seconds for which a new dead letter is reported."""
    max_lag: int | None = None
    """Messages not consumed yet, of all queues together; None: any number is fine."""
    max_age: float | None = None
    """Seconds since the oldest message not consumed yet was stored; None: any age is fine.

    The ages must be in the view: ``Admin.fetch_group(group, ages=True)``.
    """


DEFAULT_LIMITS = GroupLimits()


class Severity(StrEnum):
    """Consequences of a finding for messages, the worst first."""

    CRITICAL = "critical"
    """They are refused, or may be lost."""
    ERROR = "error"
    """They are not consumed, or twice."""
    WARNING = "warning"
    """Nothing has happened yet, or operators have caused it."""


class FindingKind(StrEnum):
    """The problems of a group, a broker or a name server.

    With ``MEMBER_SILENT`` or ``BROKER_SILENT``, others may be undetected.
    """

    QUEUE_UNOWNED = "queue_unowned"
    QUEUE_OWNED_TWICE = "queue_owned_twice"
    MEMBER_IDLE = "member_idle"
    SUBSCRIPTIONS_DIFFER = "subscriptions_differ"
    SUBSCRIPTION_IGNORED = "subscription_ignored"
    STRATEGIES_DIFFER = "strategies_differ"
    MODES_DIFFER = "modes_differ"
    TOPIC_MISSING = "topic_missing"
    PINNED_IP_ABSENT = "pinned_ip_absent"
    PINS_DIFFER = "pins_differ"
    PIN_COPIES_DIFFER = "pin_copies_differ"
    NO_MEMBERS = "no_members"
    MEMBER_SILENT = "member_silent"
    MODELS_DIFFER = "models_differ"
    MEMBERS_PROXIED = "members_proxied"
    CLIENT_ID_SHARED = "client_id_shared"
    MEMBER_LISTED_AGAIN = "member_listed_again"
    QUEUES_UNREADABLE = "queues_unreadable"
    RETRY_QUEUES_UNREADABLE = "retry_queues_unreadable"
    LISTENER_SLOW = "listener_slow"
    QUEUE_BLOCKED = "queue_blocked"
    QUEUE_NOT_FETCHED = "queue_not_fetched"
    MEMBER_FAILS = "member_fails"
    OFFSET_BEYOND_END = "offset_beyond_end"
    NAME_SERVERS_DIFFER = "name_servers_differ"
    VERSIONS_DIFFER = "versions_differ"
    CLOCK_DIFFERS = "clock_differs"
    DEAD_LETTERS = "dead_letters"
    LAG_LARGE = "lag_large"
    MESSAGES_OLD = "messages_old"
    BROKER_SILENT = "broker_silent"
    NAME_SERVER_SILENT = "name_server_silent"
    NAME_SERVER_INCOMPLETE = "name_server_incomplete"
    BROKER_GONE = "broker_gone"
    MASTER_MISSING = "master_missing"
    BROKER_INACTIVE = "broker_inactive"
    BROKER_READ_ONLY = "broker_read_only"
    DISK_FULL = "disk_full"
    DISK_NEARLY_FULL = "disk_nearly_full"
    PAGE_CACHE_BUSY = "page_cache_busy"
    SENDS_WAIT = "sends_wait"


@record(kw_only=False)
class Finding:
    """One problem: its kind for programs, its text for people.

    Attributes:
        kind: its kind.
        text: what is wrong, and often why.
        subject: the client id of the member, the name of the broker or the address of the name server, if it
            is about a single one.
        queues: the queues that it is about, if it is about single ones.
    """

    kind: FindingKind
    text: str
    subject: str = ""
    queues: tuple[MessageQueue, ...] = ()


class TrackType(StrEnum):
    """State of a message in a group (TrackType in the Java client)."""

    CONSUMED = "CONSUMED"
    CONSUMED_BUT_FILTERED = "CONSUMED_BUT_FILTERED"
    NOT_CONSUME_YET = "NOT_CONSUME_YET"
    CONSUME_BROADCASTING = "CONSUME_BROADCASTING"
    UNKNOWN = "UNKNOWN"


@record
class MessageTrack:
    """A message in one group (MessageTrack in the Java client).

    Attributes:
        consumer_group: the group.
        track_type: what is known.
        consumer_offset: the group's offset in the message's queue; None: it has none.
        is_online: whether the group has members now.
        error: why it is not known.
    """

    consumer_group: str
    track_type: TrackType
    consumer_offset: int | None = None
    is_online: bool = False
    error: str | None = None
