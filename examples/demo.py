"""Write a data set to a real RocketMQ through Spark, read it back, and check that both are equal.

    python -m examples.demo

Needs Java 17 or newer. Fetches the server's jars once, starts a name server and two brokers on this
machine, and removes everything at the end. Exit code 0: equal; 1: not equal, or it could not run; 130 and
143: interrupted.
"""

import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Annotated, Final, NamedTuple

import typer
from rich.console import Console
from rich.status import Status
from rich.table import Table

from examples.demo_check import OffsetRange, QueueKey, StoredRow, find_difference
from examples.demo_data import DATA_SHA256, ROWS, DemoRow, data_sha256, make_rows
from examples.demo_spark import local_spark, make_frame, read_topic, task_by_sequence, write_topic
from rmqtools import Admin, ClientConfig, RocketMQError
from rmqtools.cluster import LocalCluster, ensure_jars

TOPIC: Final = "Demo"
QUEUES_PER_BROKER: Final = 4

out = Console(highlight=False, soft_wrap=True)
err = Console(highlight=False, soft_wrap=True, stderr=True)


class DifferenceError(Exception):
    """The messages read differ from those written; the text names the first difference."""


class RoundTrip(NamedTuple):
    """The results of writing and reading."""

    stored: list[StoredRow]
    offsets: dict[QueueKey, OffsetRange]
    task_by_sequence: dict[int, int]


def run_demo(*, flip_byte: int | None = None) -> None:
    """Run the demo; stop and remove everything at its end, also after an error.

    Args:
        flip_byte: the number of a row; one bit of its body is flipped before it is written.

    Raises:
        DifferenceError: the read data are not the data set.
        RocketMQError: no Java, no jars, or a server that does not start.
    """
    began = perf_counter()
    rows = _checked_rows()
    with _step("server jars here") as status:
        ensure_jars(progress=lambda done, total: status.update(f"fetching jars: {done} of {total}"))
    to_write = rows if flip_byte is None else _with_flipped_byte(rows, flip_byte)
    trip = _write_and_read(to_write)
    with _step("compared"):
        difference = find_difference(rows, trip.stored, trip.offsets, trip.task_by_sequence)
    out.print(_make_table(trip.stored, trip.offsets))
    if difference is not None:
        raise DifferenceError(difference)
    out.print(
        f"equal: {len(trip.stored):,} messages, {_body_bytes(rows):,} bytes in bodies, "
        f"{len(trip.offsets)} queues, {perf_counter() - began:.1f} seconds"
    )


def _checked_rows() -> list[DemoRow]:
    with _step(f"{ROWS:,} rows made"):
        rows = make_rows()
        if (found := data_sha256(rows)) != DATA_SHA256:
            raise DifferenceError(f"the data set has SHA-256 {found}, but {DATA_SHA256} is pinned")
    return rows


def _with_flipped_byte(rows: Sequence[DemoRow], number: int) -> list[DemoRow]:
    body = bytearray(rows[number].body)
    body[len(body) // 2] ^= 1
    return [*rows[:number], rows[number]._replace(body=bytes(body)), *rows[number + 1 :]]


def _write_and_read(rows: Sequence[DemoRow]) -> RoundTrip:
    with ExitStack() as started:
        work = started.enter_context(tempfile.TemporaryDirectory(prefix="rmqtools-demo-"))
        with _step("name server and 2 brokers started"):
            cluster = started.enter_context(LocalCluster(brokers=2))
            admin = started.enter_context(Admin(ClientConfig(name_server=cluster.name_server)))
            admin.create_topic(TOPIC, read_queue_nums=QUEUES_PER_BROKER, write_queue_nums=QUEUES_PER_BROKER)
        with _step("Spark started"):
            spark = started.enter_context(local_spark(Path(work)))
        with _step("written through Spark"):
            frame = make_frame(spark, rows)
            tasks = task_by_sequence(frame)
            write_topic(frame, cluster.name_server, TOPIC)
        with _step("read through Spark"):
            stored = read_topic(spark, cluster.name_server, TOPIC)
        offsets = _fetch_offsets(admin)
        with _step("all stopped"):
            started.close()
    return RoundTrip(stored, offsets, tasks)


def _fetch_offsets(admin: Admin) -> dict[QueueKey, OffsetRange]:
    return {
        QueueKey(queue.broker_name, queue.queue_id): OffsetRange(
            admin.min_offset(queue), admin.max_offset(queue)
        )
        for queue in admin.fetch_subscribe_queues(TOPIC)
    }


def _make_table(stored: Sequence[StoredRow], offsets: Mapping[QueueKey, OffsetRange]) -> Table:
    read = Counter(one.queue for one in stored)
    table = Table(title=f"topic {TOPIC}", show_footer=True)
    table.add_column("broker", "total")
    for header, total in (
        ("queue", len(offsets)),
        ("min offset", ""),
        ("max offset", ""),
        ("max - min", sum(held.maximum - held.minimum for held in offsets.values())),
        ("messages read", len(stored)),
    ):
        table.add_column(header, str(total), justify="right")
    for queue, held in sorted(offsets.items()):
        cells = (queue.queue_id, held.minimum, held.maximum, held.maximum - held.minimum, read[queue])
        table.add_row(queue.broker_name, *map(str, cells))
    return table


def _body_bytes(rows: Sequence[DemoRow]) -> int:
    return sum(len(row.body) for row in rows)


@contextmanager
def _step(done: str) -> Iterator[Status]:
    """Print a step and its seconds when it is done; on a terminal also while it runs."""
    began = perf_counter()
    with err.status(f"{done} ...") as status:
        yield status
    out.print(f"{perf_counter() - began:6.1f} s  {done}")


class _Interrupted(BaseException):
    """A signal as an exception, so that everything started is stopped."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # a second signal must not interrupt the clean-up
    raise _Interrupted(number)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    flip_byte: Annotated[
        int | None,
        typer.Option(
            min=0, max=ROWS - 1, metavar="ROW", help="Flip a bit of this row's body: must end in 1."
        ),
    ] = None,
) -> None:
    """Write a data set to a real RocketMQ through Spark, read it back, prove the two equal."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        run_demo(flip_byte=flip_byte)
    except DifferenceError as error:
        err.print(f"not equal: {error}", markup=False)
        sys.exit(1)
    except RocketMQError as error:
        err.print(f"error: {error}", markup=False)
        sys.exit(1)
    except _Interrupted as error:
        err.print(f"interrupted by {signal.Signals(error.args[0]).name}; what was started is stopped")
        sys.exit(128 + int(error.args[0]))


if __name__ == "__main__":
    app()
