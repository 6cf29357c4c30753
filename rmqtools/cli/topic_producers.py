"""``rmqtools topic producers``: where a topic's last messages came from, and producers connected there."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from rmqtools import Admin, ClientConfig, MessageExt, QueueRange
from rmqtools.cli.connection import Json, NameServer, Settings, client_config, partial_admin
from rmqtools.cli.printing import Column, print_json, print_table, say, time_text
from rmqtools.cli.topic import Topic, known_route


def producers(
    topic: Topic,
    name_server: NameServer = "",
    last: Annotated[
        int, typer.Option(min=1, help="How many of the newest messages of each queue to read.")
    ] = 100,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show which machines the last messages of a topic came from, and the producers connected from there.

    Brokers know producers by group, and not the topics they send to. So the machines are those that the
    messages name; a producer on such a machine may send to other topics only.
    """
    with partial_admin(client_config(name_server, settings, ClientConfig)) as admin:
        known_route(admin, topic)
        rows = _rows(_newest(admin, topic, last), _by_host(admin))
        if as_json:
            print_json(rows)
        elif rows:
            columns = [Column("host"), Column("messages", 1), Column("last message", 2)]
            print_table([*columns, "group", "producers"], [tuple(row.values()) for row in rows])
        elif not admin.missing_brokers:
            say(f"topic {topic} has no messages")


def _newest(admin: Admin, topic: str, last: int) -> Iterable[MessageExt]:
    known = admin.fetch_topic_stats(topic).offset_table
    for queue in admin.fetch_subscribe_queues(topic):
        end = known[queue].max_offset if queue in known else 0
        begin = max(known[queue].min_offset, end - last) if end else 0
        if begin < end:
            for messages in admin.read_messages(QueueRange(queue, begin, end), corrupt_body="raw"):
                yield from messages


def _by_host(admin: Admin) -> Mapping[str, Mapping[str | None, list[str]]]:
    """Return the client ids of connected producers, by their machine and group."""
    found: defaultdict[str, defaultdict[str | None, list[str]]] = defaultdict(lambda: defaultdict(list))
    for group, infos in admin.fetch_producers().items():
        for info in infos:
            found[_host(info.remote_ip.lstrip("/"))][group].append(info.client_id)
    return found


_NOBODY: Mapping[str | None, list[str]] = {None: []}


def _rows(
    messages: Iterable[MessageExt], by_host: Mapping[str, Mapping[str | None, list[str]]]
) -> list[dict[str, Any]]:
    """Return a row for each machine and producer group; the one with most messages first."""
    counts: Counter[str] = Counter()
    latest: dict[str, int] = {}
    for message in messages:
        host = _host(message.born_host)
        counts[host] += 1
        latest[host] = max(latest.get(host, 0), message.store_timestamp_ms)
    return [
        {
            "host": host,
            "messages": count,
            "last_message": time_text(latest[host]),
            "producer_group": group,
            "client_ids": ids,
        }
        for host, count in counts.most_common()
        for group, ids in sorted((by_host.get(host) or _NOBODY).items(), key=lambda item: item[0] or "")
    ]


def _host(addr: str) -> str:
    """Return the host of ``host:port``."""
    return addr.rpartition(":")[0]
