"""``rmqtools produce``: sends lines, JSON lines, Parquet or CSV."""

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from rmqtools import Admin, Message, Producer, ProducerConfig, SendResult
from rmqtools.cli.connection import Json, NameServer, Settings, client_config, complete_topic
from rmqtools.cli.exit_code import ExitCode
from rmqtools.cli.input_messages import (
    Template,
    messages_of_json,
    messages_of_lines,
    messages_of_rows,
    read_chunks,
)
from rmqtools.cli.moments import duration_option
from rmqtools.cli.pace import Pace, Rate
from rmqtools.cli.pairs import pairs
from rmqtools.cli.printing import print_json, print_table, row_cells, say, warn
from rmqtools.cli.topic import known_route
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import (
    ConfigError,
    SendError,
    SendManyError,
    TopicNotFoundError,
    UnknownOutcomeError,
)
from rmqtools.number_of import number_of

_FEW = 10  # so many messages are named without --ids


class Format(StrEnum):
    """Forms in which messages are given."""

    lines = "lines"
    json = "json"
    parquet = "parquet"
    csv = "csv"


Topic = Annotated[
    str,
    typer.Argument(help="The topic to send to.", show_default=False, autocompletion=complete_topic),
]
Input = Annotated[
    Path | None,
    typer.Option("--file", "-f", metavar="FILE", help="Read this; default, and '-': standard input."),
]
Keys = Annotated[list[str] | None, typer.Option("--key", "-k", metavar="KEY", help="A key; several times.")]
Properties = Annotated[
    list[str] | None, typer.Option("--property", "-p", metavar="NAME=VALUE", help="Several times.")
]
Create = Annotated[bool, typer.Option("--create", help="Create the topic on all masters if there is none.")]
Ids = Annotated[
    bool, typer.Option("--ids", help="Print id, queue and offset of every message, not only of up to ten.")
]


@dataclass(slots=True)
class Summary:
    """Totals of the messages by outcome."""

    stored: int = 0
    unknown: int = 0
    failed: int = 0
    seconds: float = 0.0
    latencies: "array[float]" = field(default_factory=lambda: array("d"))
    first_error: str | None = None
    ids: bool = False
    results: list[SendResult] = field(default_factory=list)  # all with ids, else one more than a few

    def add(self, result: SendResult | SendError) -> None:
        """Count one message."""
        if isinstance(result, SendResult):
            self.stored += 1
            if self.ids or len(self.results) <= _FEW:
                self.results.append(result)
            if result.attempts:
                self.latencies.append(result.attempts[-1].seconds)
            return
        self.first_error = self.first_error or str(result)
        if isinstance(result, UnknownOutcomeError):
            self.unknown += 1
        else:
            self.failed += 1

    def values(self) -> dict[str, object]:
        """Return the numbers for JSON; latencies are milliseconds of a request, null if not measured."""
        ordered = sorted(self.latencies)
        shares = {"p50_ms": 0.5, "p99_ms": 0.99}
        measured = {
            name: round(ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000, 2)
            if ordered
            else None
            for name, share in shares.items()
        }
        counts = {
            name: value for name, value in asdict(self).items() if name in ("stored", "unknown", "failed")
        }
        rate = round(self.stored / self.seconds, 1) if self.seconds else 0.0
        named = {"messages": [_place(result) for result in self.results]} if self.ids else {}
        return {**counts, "seconds": round(self.seconds, 3), "rate": rate, **measured, **named}


def produce(
    topic: Topic,
    name_server: NameServer = "",
    file: Input = None,
    form: Annotated[
        Format, typer.Option("--format", help="A body a line; JSON objects; a Parquet or CSV file.")
    ] = Format.lines,
    tags: Annotated[str | None, typer.Option(metavar="TAGS", help="The tag of every message.")] = None,
    keys: Keys = None,
    properties: Properties = None,
    sharding_key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Send to the queue of this key, in order, one message at a time."),
    ] = None,
    delay: Annotated[
        float | None, duration_option("Deliver after so long (brokers 5.x, timer wheel).")
    ] = None,
    delay_level: Annotated[int, typer.Option(min=0, max=18, help="Deliver after this level's delay.")] = 0,
    rate: Rate = None,
    create: Create = False,
    ids: Ids = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Send messages, and print how many are stored, how fast, and how many of unknown outcome.

    JSON objects stand one a line, over several lines, or in arrays. An object has body (text, or any JSON)
    or body_base64, and may have tags, keys, properties, sharding_key, flag, delay_level, delay (seconds),
    deliver_at_ms. Parquet and CSV have columns body, tags, keys, shardingKey, ... What consume wrote as JSON
    lines or Parquet is taken too: body, tags, keys, properties, sharding key and flag. It stops at the first
    message that is not stored, with exit code 1.

        seq 1000 | rmqtools produce orders
    """
    template = Template(
        topic=topic,
        tags=tags,
        keys=tuple(keys or ()),
        properties=pairs(properties),
        sharding_key=sharding_key,
        delay_level=delay_level,
        delay=delay,
    )
    summary = Summary(ids=ids)
    start = SYSTEM_CLOCK.monotonic()
    try:
        config = client_config(name_server, settings, ProducerConfig)
        _find_topic(config, topic, create=create)
        with Producer(config) as producer:
            if form in (Format.parquet, Format.csv):
                _send_file(producer, file, form, template, rate, summary)
            else:
                _send_lines(producer, file, form, template, rate, summary)
    finally:
        summary.seconds = SYSTEM_CLOCK.monotonic() - start
        _print_summary(topic, summary, as_json=as_json)
    if summary.failed or summary.unknown:
        raise typer.Exit(ExitCode.NO)


def _find_topic(config: ProducerConfig, topic: str, *, create: bool) -> None:
    """Find out that a topic exists; many brokers would make one of any name that they are sent."""
    with Admin(config) as admin:
        try:
            known_route(admin, topic)
        except TopicNotFoundError as error:
            if not create:
                raise TopicNotFoundError(f"{error}; to create it, give --create") from error
            admin.create_topic(topic)


def _send_lines(
    producer: Producer,
    file: Path | None,
    form: Format,
    template: Template,
    rate: float | None,
    summary: Summary,
) -> None:
    with ExitStack() as stack:
        lines = read_chunks(_opened(file, stack))
        messages_of = messages_of_json if form is Format.json else messages_of_lines
        _send_all(producer, messages_of(lines, template), rate, summary)


def _send_all(
    producer: Producer, chunks: Iterable[list[Message]], rate: float | None, summary: Summary
) -> None:
    pace, sent = Pace(rate), 0
    for chunk in chunks:
        queues = len(producer.fetch_publish_queues(chunk[0].topic))
        for messages in _portions(chunk, queues, rate):
            pace.wait(sent)
            for result in _send(producer, messages):
                summary.add(result)
            sent += len(messages)
            if summary.failed or summary.unknown:
                return


def _portions(messages: list[Message], queues: int, rate: float | None) -> Iterator[list[Message]]:
    """Cut messages into a portion a queue, since a batch has one; with a rate, into tenths of a second."""
    size = ceil(len(messages) / queues) if rate is None else max(1, int(rate / 10))
    return (messages[start : start + size] for start in range(0, len(messages), size))


def _send(producer: Producer, messages: list[Message]) -> Iterator[SendResult | SendError]:
    """Send messages in batches; those with a sharding key one by one, in their order."""
    try:
        if not any(message.sharding_key for message in messages):
            yield from producer.send_many(messages)
            return
        for message in messages:
            yield producer.send_orderly(message) if message.sharding_key else producer.send(message)
    except SendManyError as error:
        yield from error.results
    except SendError as error:
        yield error


def _send_file(
    producer: Producer,
    file: Path | None,
    form: Format,
    template: Template,
    rate: float | None,
    summary: Summary,
) -> None:
    """Send the rows of a Parquet or CSV file, through Arrow; or the messages that consume wrote."""
    if file is None or str(file) == "-":
        raise ConfigError(f"--format {form.value} reads a file: give --file FILE.{form.value}")
    if find_spec("pyarrow") is None:
        raise ConfigError(
            f"--format {form.value} needs pyarrow: pip install pyarrow numpy, or '.[arrow]' in a checkout"
        )
    from rmqtools import arrow  # optional dependency

    if form is Format.parquet and arrow.holds_read_messages(file):
        _send_all(producer, messages_of_rows(arrow.read_messages(file), template), rate, summary)
        return
    if rate is not None or template != Template(topic=template.topic):
        raise ConfigError(
            f"--format {form.value}: --rate, --tags, --key, --property, --sharding-key, --delay and "
            "--delay-level are for lines, JSON lines and files of consume: leave them out, and give columns"
        )
    report = arrow.SendReport()
    try:
        arrow.send_batches(producer, arrow.read_file(file, form.value), topic=template.topic, report=report)
    except SendError as error:
        summary.first_error = str(error)
    summary.stored, summary.failed, summary.unknown = report.acked, report.failed, report.unknown


def _opened(file: Path | None, stack: ExitStack) -> BinaryIO:
    if file is None or str(file) == "-":
        return sys.stdin.buffer
    try:
        return stack.enter_context(file.open("rb"))
    except OSError as error:
        raise ConfigError(f"--file {file}: {error.strerror}: give a file that can be read, or -") from error


def _print_summary(topic: str, summary: Summary, *, as_json: bool) -> None:
    values = summary.values()
    if as_json:
        print_json(values)
    else:
        shown = _texts(("p50", values["p50_ms"]), ("p99", values["p99_ms"]))
        say(
            f"{number_of(summary.stored, 'message')} stored in {topic}, {values['seconds']} s, "
            f"{values['rate']}/s{shown}, {summary.unknown} of unknown outcome, {summary.failed} not stored"
        )
        if summary.ids or len(summary.results) <= _FEW:
            _print_places(summary.results)
    if summary.first_error:
        warn(f"error: {summary.first_error}")


def _place(result: SendResult) -> dict[str, object]:
    queue = result.queue
    return {
        "msg_id": result.msg_id,
        "broker_name": queue.broker_name,
        "queue_id": queue.queue_id,
        "queue_offset": result.queue_offset,
    }


def _print_places(results: Sequence[SendResult]) -> None:
    if results:
        rows = [row_cells(_place(result)) for result in results]
        print_table(["message id", "queue", "offset"], rows)


def _texts(*latencies: Sequence[object]) -> str:
    return "".join(f", {name} {value} ms" for name, value in latencies if value is not None)
