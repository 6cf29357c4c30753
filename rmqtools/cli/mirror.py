"""``rmqtools mirror``: copies topics, each message once and in order, and moves groups to the copies."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import Annotated

import typer

from rmqtools import Admin, ClientConfig, MessageQueue, Mirror, MirrorConfig, ProducerConfig, QueueMirror
from rmqtools.cli.change import DryRun, Yes, agreed
from rmqtools.cli.connection import Json, NameServer, Settings, broker_clock, client_config
from rmqtools.cli.moments import clock_text, duration_option, moment_ms
from rmqtools.cli.pace import Rate
from rmqtools.cli.printing import (
    Column,
    ends_quietly,
    now,
    print_json,
    print_table,
    say,
    warn,
    warning,
)
from rmqtools.cli.selection import Sql, Tags
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.config.mirror import Begin
from rmqtools.errors import ConfigError, ExactAppendError
from rmqtools.model.queue import queue_name
from rmqtools.number_of import number_of

_LINE_SECONDS = 5.0  # between two lines of progress

app = typer.Typer(
    no_args_is_help=True,
    help="Copies of topics in another cluster, or in other topics: each message once and in order.",
)

Topics = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC[=COPY],...", help="Topics to copy, and other names of the copies.", show_default=False
    ),
]
To = Annotated[
    str,
    typer.Option("--to", metavar="HOST:PORT", help="Name server of the target. Default: the same cluster."),
]
ToProfile = Annotated[
    str | None, typer.Option(metavar="NAME", help="Profile of the target: its keys, certificates, namespace.")
]
ToSettings = Annotated[
    list[str] | None,
    typer.Option("--to-set", metavar="NAME=VALUE", help="A setting of the target's client; several times."),
]
Name = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Name of the mirror, the same after a restart. Default: the source cluster's."
    ),
]
SourceName = Annotated[
    str | None, typer.Option(metavar="NAME", help="Name of the source cluster, if both have the same.")
]
From = Annotated[
    str, typer.Option("--from", metavar="earliest|latest|TIME", help="Where the first start begins.")
]
Until = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only messages stored before this time; waits for it.")
]
Refused = Annotated[
    str,
    typer.Option(
        metavar="stop|skip|TOPIC",
        help="Messages that the target refuses: stop their topic, skip them, or send them to TOPIC.",
    ),
]
TargetName = Annotated[str | None, typer.Option(metavar="NAME", help="Name of the target cluster.")]


_OPTIONS = {  # of the settings that errors of the mirror name
    "max_messages_per_second": "--rate",
    "settle_seconds": "--settle",
    "source_name": "--source-name",
    "target_name": "--target-name",
    "is_new": "--new",
    "refused": "--refused",
    "share": "--share",
    "tags": "--tags",
    "name": "--name",
    "sql": "--sql",
}


@dataclass(frozen=True, slots=True)
class _Look:
    """A mirror at one moment."""

    moment: float
    states: Sequence[QueueMirror]

    @property
    def copied(self) -> int:
        """Messages of all queues."""
        return sum(state.copied for state in self.states)

    @property
    def lag(self) -> int | None:
        """Messages of all queues; None: that of one is not known."""
        return (
            sum(state.lag for state in self.states) if all(state.is_known for state in self.states) else None
        )

    def line(self, before: "_Look") -> str:
        """Return a line of progress; time left is that at the rate since the look before."""
        seconds = max(0.001, self.moment - before.moment)
        lag = "unknown" if self.lag is None or not self.states else self.lag
        parts = [f"copied {self.copied}", f"{(self.copied - before.copied) / seconds:.0f}/s", f"lag {lag}"]
        if refused := sum(state.refused for state in self.states):
            parts.append(f"refused {refused}")
        reasons = Counter(state.waits_for for state in self.states if state.waits_for and not state.error)
        parts += [f"{number_of(count, 'queue')} waiting for {reason}" for reason, count in reasons.items()]
        stopped = {state.source.topic: state.error for state in self.states if state.error}
        parts += [f"topic {topic} has stopped: {_in_options(error)}" for topic, error in stopped.items()]
        if len(parts) == 3:
            done = ((before.lag or 0) - (self.lag or 0)) / seconds
            parts.append(f"{(self.lag or 0) / done:.0f} s left" if done > 0 else "time left unknown")
        return f"{clock_text(now())}  {', '.join(parts)}"


@contextmanager
def _options_in_errors() -> Iterator[None]:
    """Replace names of settings in errors by those of options."""
    try:
        yield
    except (ConfigError, ExactAppendError) as error:
        raise type(error)(_in_options(str(error))) from error


def _in_options(text: str) -> str:
    return re.sub(r"\b(\w+_\w+|\w+(?==))", lambda found: _OPTIONS.get(found[0], found[0]), text)


@app.command()
@_options_in_errors()
def run(
    topics: Topics,
    name_server: NameServer = "",
    to: To = "",
    to_profile: ToProfile = None,
    begin: From = "earliest",
    until: Until = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with new messages, until Ctrl-C.")] = False,
    tags: Tags = None,
    sql: Sql = None,
    share: Annotated[
        float, typer.Option(metavar="NUMBER", help="Part of the messages, by key: 0.01 is one key in 100.")
    ] = 1.0,
    rate: Rate = None,
    name: Name = None,
    source_name: SourceName = None,
    target_name: TargetName = None,
    refused: Refused = "stop",
    new: Annotated[
        bool, typer.Option("--new", help="Allow a first copy to queues whose first messages have expired.")
    ] = False,
    settle: Annotated[float, duration_option("Wait for late requests of a mirror that died.")] = 10.0,
    settings: Settings = None,
    to_settings: ToSettings = None,
    as_json: Json = False,
) -> None:
    """Copy topics: bodies, tags, keys, properties, and the order of each queue. Each message is stored once.

    A mirror that was killed continues where it was. The copies must exist and have as many queues. It waits
    for queues whose broker is down. Two mirrors may copy in both directions: a message never comes back to a
    cluster that it has passed.

        rmqtools mirror run orders --to 10.0.1.5:9876 --follow

        rmqtools mirror run orders=orders-staging --share 0.01 --follow
    """
    source = client_config(name_server, settings, ClientConfig)
    config = MirrorConfig(
        source=source,
        target=_target(name_server, settings, to, to_profile, to_settings),
        topics=_topics(topics),
        begin=_begin(source, begin),
        tags=_tags(tags),
        sql=sql,
        share=share,
        max_messages_per_second=rate,
        name=name,
        source_name=source_name,
        target_name=target_name,
        refused=refused,
        is_new=new,
        settle_seconds=settle,
    )
    until_ms = None if until is None else _moment_ms(source, "--until", until)
    with ends_quietly(), Mirror(config) as mirror:
        done = _run_aside(mirror, follow=follow, until_ms=until_ms)
        _show(_watched(mirror, done), as_json=as_json)


@app.command()
@_options_in_errors()
def groups(
    topics: Topics,
    group: Annotated[
        list[str],
        typer.Option("--group", "-g", metavar="GROUP", help="The group; several times.", show_default=False),
    ],
    name_server: NameServer = "",
    to: To = "",
    to_profile: ToProfile = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    name: Name = None,
    source_name: SourceName = None,
    target_name: TargetName = None,
    settings: Settings = None,
    to_settings: ToSettings = None,
    as_json: Json = False,
) -> None:
    """Set the offsets of groups on the copies, so that the groups go on there where they are at the source.

    Name and topics are those of the mirror. Refused if a copy is not as far as the group, if failed messages
    of the group wait in its retry topic, or if it has members at the target.
    """
    config = MirrorConfig(
        source=client_config(name_server, settings, ClientConfig),
        target=_target(name_server, settings, to, to_profile, to_settings),
        topics=_topics(topics),
        name=name,
        source_name=source_name,
        target_name=target_name,
    )
    with Mirror(config) as mirror:
        planned = {each: mirror.move_group(each, dry_run=True) for each in group}
        if as_json:
            print_json(planned)
        else:
            rows = [
                (each, *_place(moved.source), moved.source_offset, *_place(moved.target), moved.target_offset)
                for each, offsets in planned.items()
                for moved in offsets
            ]
            columns = ["group", "topic", "queue", "offset", "copy", "queue of copy", "offset there"]
            print_table(columns, rows)
        question = f"Set these offsets of {', '.join(group)} at the target?"
        if not agreed(question, yes=yes, dry_run=dry_run):
            return
        for each in group:
            mirror.move_group(each)
    if not as_json:
        say(f"continued at the copies: {number_of(len(group), 'group')}")


def _topics(text: str) -> dict[str, str]:
    """Return ``orders,payments=copy`` as a mapping."""
    pairs = (part.strip().partition("=") for part in text.split(",") if part.strip())
    return {source: target or source for source, _, target in pairs}


def _tags(text: str | None) -> tuple[str, ...]:
    return tuple(sorted(tag.strip() for tag in (text or "").split("||") if tag.strip()))


def _target(
    name_server: str,
    settings: Sequence[str] | None,
    to: str,
    to_profile: str | None,
    to_settings: Sequence[str] | None,
) -> ProducerConfig:
    """Return the settings of the target: of its own profile, or those of the source elsewhere."""
    if to_profile is not None:
        return client_config(to, to_settings, ProducerConfig, profile=to_profile)
    return client_config(to or name_server, [*(settings or ()), *(to_settings or ())], ProducerConfig)


def _begin(source: ClientConfig, text: str) -> Begin:
    return text if text in ("earliest", "latest") else _moment_ms(source, "--from", text)  # type: ignore[return-value]


def _moment_ms(source: ClientConfig, option: str, text: str) -> int:
    """Parse a moment; one that is some time ago goes by the clocks of the source."""

    def now_ms() -> int:
        with Admin(source) as admin:
            return broker_clock(admin)()

    return moment_ms(option, text, now_ms)


def _run_aside(mirror: Mirror, *, follow: bool, until_ms: int | None) -> "Future[list[QueueMirror]]":
    """Run the mirror on a thread, so that this one can show progress and be interrupted."""
    done: Future[list[QueueMirror]] = Future()

    def work() -> None:
        try:
            done.set_result(mirror.run(follow=follow, until_ms=until_ms))
        except BaseException as error:  # noqa: BLE001 - raised on the main thread
            done.set_exception(error)

    Thread(target=work, name="mirror", daemon=True).start()
    return done


def _watched(mirror: Mirror, done: "Future[list[QueueMirror]]") -> list[QueueMirror]:
    """Print a line of progress on standard error now and then; return the result when it is there."""
    before = _look(mirror)
    while True:
        try:
            return done.result(_LINE_SECONDS)
        except TimeoutError:
            if done.done():  # its own error
                raise
            found = _look(mirror)
            warn(found.line(before))
            before = found


def _look(mirror: Mirror) -> _Look:
    return _Look(SYSTEM_CLOCK.monotonic(), mirror.progress())


def _show(states: Sequence[QueueMirror], *, as_json: bool) -> None:
    if as_json:
        print_json(states)
        return
    columns = [Column("topic"), Column("queue"), Column("copy"), Column("queue of copy", 2)]
    columns += [Column("copied"), Column("left out"), Column("refused", 3, warning), Column("position", 1)]
    rows = [
        (
            *_place(state.source),
            *_place(state.target),
            state.copied,
            state.left_out,
            state.refused,
            state.position,
        )
        for state in states
    ]
    print_table(columns, rows)


def _place(queue: MessageQueue) -> tuple[str, str]:
    return queue.topic, queue_name(queue)
