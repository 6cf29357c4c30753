"""Metrics of a cluster, made from one look at it.

Names are those of Apache's rocketmq-exporter where it has one (``rocketmq_*``), else ours (``rmqtools_*``).
Its labels that change with members or restarts are left out: each change would begin a new series.
Source of the names: RMQMetricsCollector (rocketmq-exporter 0.0.3).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rmqtools import Admin
from rmqtools.cli.broker import broker_values
from rmqtools.cli.group import is_system_group
from rmqtools.cli.topic import user_topics
from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.errors import RemotingTimeoutError, RocketMQError, TopicNotFoundError
from rmqtools.group import GroupCheck, GroupView, severity_of
from rmqtools.log import get_logger
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX, dlq_topic

_AT_ONCE = 8  # groups or topics asked about at the same time: bounds the requests under way
_BROKER = ("cluster", "broker", "brokerIP")
_QUEUE = ("group", "topic", "broker", "queue")
_BROKER_VALUES = {
    "rocketmq_broker_tps": ("put_tps", "Messages stored a second."),
    "rocketmq_broker_qps": ("get_tps", "Messages given out a second."),
    "rocketmq_brokeruntime_put_latency_99": ("put_latency_p99_ms", "Milliseconds of 99 % of the stores."),
    "rocketmq_brokeruntime_pagecache_lock_time_mills": (
        "page_cache_wait_ms",
        "Milliseconds that the commit log has been locked.",
    ),
    "rocketmq_brokeruntime_send_threadpool_queue_size": ("send_queue", "Requests to store that wait."),
}
log = get_logger(__name__)
R = TypeVar("R")


@dataclass
class _Look:
    """Metric families that are being filled."""

    families: dict[str, GaugeMetricFamily] = field(default_factory=dict)
    failures: int = 0
    until: float = 0.0
    clock: Clock = SYSTEM_CLOCK

    def add(self, name: str, help_text: str, labels: Mapping[str, object], value: float) -> None:
        """Add a value; all values of a name have the same labels."""
        if name not in self.families:
            self.families[name] = GaugeMetricFamily(name, help_text, labels=[*labels])
        self.families[name].add_metric([str(each) for each in labels.values()], value)


class ClusterCollector(Collector):
    """Gives Prometheus the numbers of the last look.

    Args:
        keep: seconds after which numbers are old, and no longer shown.
        deadline: seconds after which a look begins no further part: it counts those left out.
    """

    def __init__(self, *, keep: float = 60.0, deadline: float = 30.0, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._keep = keep
        self._deadline = deadline
        self._families: Sequence[Metric] = []
        self._until = 0.0
        self._success_ms: int | None = None

    def collect(self) -> Iterable[Metric]:
        """Return the families of the last look; if it is too old, only that it is not up."""
        if self._families and self._clock.monotonic() < self._until:
            return self._families
        return [_up(0.0), *self._success()]

    def look(self, admin: Admin) -> None:
        """Look at the cluster, and replace all numbers; old ones are never shown as if they were new.

        Without a name server there is only ``rmqtools_exporter_up 0`` and the time of the last success.
        """
        start = self._clock.monotonic()
        look = _Look(until=start + self._deadline, clock=self._clock)
        try:
            _look_at(admin, look)
            look.failures += len(admin.missing_brokers)
            self._success_ms = self._clock.now_ms()
            up = 1.0
        except RocketMQError as error:
            log.error("cluster_not_looked_at", reason=str(error))
            look, up = _Look(failures=1), 0.0
        seconds = self._clock.monotonic() - start
        look.add("rmqtools_exporter_look_seconds", "Duration of the last look.", {}, seconds)
        look.add("rmqtools_exporter_failures", "Parts that the last look has left out.", {}, look.failures)
        self._families = [_up(up), *self._success(), *look.families.values()]
        self._until = self._clock.monotonic() + self._keep

    def _success(self) -> Iterator[Metric]:
        if self._success_ms is not None:
            name = "rmqtools_exporter_last_success_timestamp_seconds"
            text = "Time of the last look that reached a name server."
            yield GaugeMetricFamily(name, text, value=self._success_ms / 1000)


def _up(value: float) -> Metric:
    text = "Whether a name server answered, and the numbers are not old."
    return GaugeMetricFamily("rmqtools_exporter_up", text, value=value)


def _look_at(admin: Admin, look: _Look) -> None:
    """Fill the families.

    Raises:
        RocketMQError: no name server answers.
    """
    servers = admin.check_cluster()
    for state in servers.brokers:
        _add_broker(look, broker_values(state))
    for server in servers.name_servers:
        text = "Whether the name server answers."
        look.add("rmqtools_name_server_up", text, {"nameServer": server.addr}, float(server.error is None))
    for (kind, subject), count in Counter((one.kind, one.subject) for one in servers.findings).items():
        labels = {"finding": kind.value, "subject": subject, "severity": severity_of(kind).value}
        look.add("rmqtools_server_findings", "Findings of rmqtools health.", labels, count)
    topics = user_topics(admin)
    try:
        groups = [name for name in admin.fetch_group_list() if not is_system_group(name)]
    except RocketMQError as error:  # a broker does not answer
        look.failures += 1
        log.error("part_not_looked_at", part="groups", reason=str(error))
        groups = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for topic, offsets in _tried(pool, look, lambda name: _offsets(admin, name), topics):
            for broker, messages in offsets.items():
                labels = {"topic": topic, "broker": broker}
                look.add("rocketmq_producer_offset", "Messages ever stored, by broker.", labels, messages)
        for group, check in _tried(pool, look, lambda name: admin.check_group(name, ages=True), groups):
            _add_group(look, group, check)


def _tried(
    pool: ThreadPoolExecutor, look: _Look, fetch: Callable[[str], R], names: Sequence[str]
) -> Iterable[tuple[str, R]]:
    """Yield what could be fetched in time; count and log what could not."""

    def attempt(name: str) -> R | RocketMQError:
        if look.clock.monotonic() > look.until:
            return RemotingTimeoutError("the look has reached its deadline")
        try:
            return fetch(name)
        except RocketMQError as error:
            return error

    for name, found in zip(names, pool.map(attempt, names), strict=True):
        if isinstance(found, RocketMQError):
            look.failures += 1
            log.error("part_not_looked_at", part=name, reason=str(found))
        else:
            yield name, found


def _offsets(admin: Admin, topic: str) -> dict[str, int]:
    """Return the end offsets of a topic, together by broker; none if it was deleted meanwhile."""
    ends: defaultdict[str, int] = defaultdict(int)
    try:
        for queue, offsets in admin.fetch_topic_stats(topic).offset_table.items():
            ends[queue.broker_name] += offsets.max_offset
    except TopicNotFoundError:
        return {}
    return ends


def _add_broker(look: _Look, row: Mapping[str, object]) -> None:
    labels = dict(zip(_BROKER, (row["cluster"], row["broker_name"], row["addr"]), strict=True))
    look.add("rmqtools_broker_up", "Whether the broker answers.", labels, float("put_tps" in row))
    for name, (value, help_text) in _BROKER_VALUES.items():
        if isinstance(number := row.get(value), int | float):
            look.add(name, help_text, labels, number)
    if isinstance(percent := row.get("disk_percent"), int | float):
        name = "rocketmq_brokeruntime_commitlog_disk_ratio"
        look.add(name, "Used part of the disk of messages.", labels, percent / 100)


def _machine(client_id: str) -> str:
    """Return the part of a client id that restarts of its process do not change."""
    return client_id.partition("@")[0]


def _ages(view: GroupView) -> dict[str, float]:
    """Return the age of the oldest message not consumed, by topic; 0: all are consumed.

    A topic is left out if none of its messages could be read: their brokers did not answer.
    """
    ages: dict[str, float] = {}
    unread: set[str] = set()
    for queue, progress in view.progress.items():
        age = view.age(queue)
        if age is None and progress.lag > 0 and queue.broker_name in view.silent_brokers:
            unread.add(queue.topic)
        ages[queue.topic] = max(ages.get(queue.topic, 0.0), age or 0.0)
    return {topic: age for topic, age in ages.items() if age or topic not in unread}


def _add_group(look: _Look, group: str, check: GroupCheck) -> None:
    lags: Counter[str] = Counter()
    for queue, progress in check.view.progress.items():
        lags[queue.topic] += progress.lag
        place = dict(zip(_QUEUE, (group, queue.topic, queue.broker_name, queue.queue_id), strict=True))
        look.add("rmqtools_group_queue_lag", "Messages not consumed yet, by queue.", place, progress.lag)
        if progress.consumer_offset is not None:
            text = "Offset that the group reads next."
            look.add("rmqtools_group_queue_offset", text, place, progress.consumer_offset)
        for machine, count in Counter(map(_machine, check.view.owners(queue))).items():
            text = "Owners of the queue on a machine."
            look.add("rmqtools_group_queue_owners", text, {**place, "machine": machine}, count)
    for topic, age in _ages(check.view).items():
        name, text = (
            "rmqtools_group_oldest_message_age_seconds",
            "Age of the oldest message not consumed yet.",
        )
        look.add(name, text, {"group": group, "topic": topic}, age)
    for topic, lag in lags.items():
        retried = topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
        name = "rocketmq_group_retrydiff" if retried else "rocketmq_group_diff"
        look.add(name, "Messages not consumed yet.", {"group": group, "topic": topic}, lag)
    labels = {"group": group, "topic": dlq_topic(group)}
    look.add("rocketmq_group_dlqdiff", "Dead letters that are stored.", labels, check.view.dead_letters.count)
    look.add("rocketmq_group_count", "Members of the group.", {"group": group}, len(check.view.members))
    for kind, count in Counter(found.kind for found in check.findings).items():
        text = "Findings of rmqtools group check."
        labels = {"group": group, "finding": kind.value, "severity": severity_of(kind).value}
        look.add("rmqtools_group_findings", text, labels, count)
