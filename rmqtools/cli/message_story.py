"""``rmqtools message story``: the life of a message, as text, JSON or a picture."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rmqtools import ClientConfig
from rmqtools.cli.connection import Json, NameServer, Settings, client_config, partial_admin
from rmqtools.cli.exit_code import ExitCode
from rmqtools.cli.moments import zone_text, zoned
from rmqtools.cli.printing import Column, no_time_text, print_json, print_table, say, warn
from rmqtools.cli.saving.picture import check_picture, save_picture
from rmqtools.clock import as_time
from rmqtools.errors import ConfigError
from rmqtools.model.message_story import MessageStory, StoryEvent
from rmqtools.number_of import number_of
from rmqtools.plot import story_figure

_ENDS = 12  # events of a group that are shown at its begin, and at its end: four attempts
_COLOURS = {"delivered": "", "sent back": "yellow", "retry": "yellow", "dead letter": "bold red"}


def story(
    key: Annotated[
        str,
        typer.Argument(metavar="KEY|ID", help="A message's key, its unique key (msg_id), or its offset id."),
    ],
    name_server: NameServer = "",
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic",
            "-t",
            metavar="TOPIC",
            help="Its topic; not needed if its producer sends trace records.",
        ),
    ] = None,
    trace_topic: Annotated[
        str, typer.Option(metavar="TOPIC", help="The topic of the trace records.")
    ] = "RMQ_SYS_TRACE_TOPIC",
    limit: Annotated[int, typer.Option(min=1, help="At most this many messages with the key.")] = 8,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Save a time line: .svg, .png or .pdf (extra plot). One message only."
        ),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--all", help="All events, also of a group with very many attempts.")
    ] = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show a message's life: sends, copies, deliveries with member and result, retries, dead letters.

    Deliveries come from trace records, which clients send with enable_trace. Unknown facts are listed at
    the end. Exit code 1: no such message; 3: a broker that may have it does not answer.
    """
    check_picture(plot)
    with partial_admin(client_config(name_server, settings, ClientConfig)) as admin:
        stories = admin.fetch_message_stories(key, topic=topic, trace_topic=trace_topic, max_num=limit)
        if as_json:
            print_json(stories)
        else:
            for found in stories:
                _print(found, whole=whole)
        if not stories:
            where = "no trace record has it: give --topic" if topic is None else f"topic {topic!r} has none"
            warn(f"error: no message with key or id {key!r}: {where}")
            raise typer.Exit(ExitCode.NO)
        if plot is not None:
            _save(plot, key, stories)


def _save(plot: Path, key: str, stories: list[MessageStory]) -> None:
    if len(stories) > 1:
        ids = ", ".join(found.msg_id for found in stories)
        raise ConfigError(
            f"--plot {plot}: key {key!r} has {number_of(len(stories), 'message')}: give one of the ids {ids}"
        )
    try:
        save_picture(plot, lambda: story_figure(stories[0]))
    except ValueError as error:
        raise ConfigError(f"--plot {plot}: message {stories[0].msg_id}: {error}") from error


def _print(found: MessageStory, *, whole: bool) -> None:
    say(f"message {found.msg_id} of topic {found.topic}, tags {found.tags or '-'}, keys {found.keys or '-'}")
    columns = [Column(f"time ({zone_text()})"), Column("event", style=lambda kind: _COLOURS.get(kind, ""))]
    columns += [Column("group"), Column("client", 1), Column("details", style=_colour)]
    print_table(columns, _rows(found.events, whole=whole))
    tracks = [group.track for group in found.groups if group.track is not None]
    if tracks:
        say("")
        rows = [
            (one.consumer_group, one.track_type.value, one.consumer_offset, one.is_online) for one in tracks
        ]
        print_table(["group", "by its offset", "group offset", "members"], rows)
    if found.unknown:
        say("")
        say("not known:")
        for text in found.unknown:
            say(f"- {text}")
    say("")


def _rows(events: Sequence[StoryEvent], *, whole: bool) -> list[tuple[str, str, str, str, str]]:
    """Return a row for each event; of a group with very many only the first and the last ones."""
    totals, seen = Counter(event.group for event in events), Counter[str]()
    rows = []
    for event in events:
        seen[event.group] += 1
        hidden = totals[event.group] - 2 * _ENDS
        if whole or hidden <= 1 or not _ENDS < seen[event.group] <= _ENDS + hidden:
            rows.append(_row(event))
        elif seen[event.group] == _ENDS + 1:
            more = f"{hidden} more events of the group: --all shows them"
            rows.append((_time(event.at_ms), "...", event.group or "-", "-", more))
    return rows


def _row(event: StoryEvent) -> tuple[str, str, str, str, str]:
    return _time(event.at_ms), event.kind.value, event.group or "-", event.client or "-", event.text


def _time(timestamp_ms: int | None) -> str:
    """Return a time with milliseconds, in the zone that times are shown in."""
    if timestamp_ms is None:
        return "not known"
    if (text := no_time_text(timestamp_ms)) is not None:
        return text
    return f"{zoned(as_time(timestamp_ms)):%Y-%m-%d %H:%M:%S}.{timestamp_ms % 1000:03}"


def _colour(details: str) -> str:
    failed = details.startswith(("failed", "exception", "timed out", "nothing returned"))
    return "red" if failed else "yellow" if details.startswith("result not known") else ""
