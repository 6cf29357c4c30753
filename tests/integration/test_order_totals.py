"""The pipeline of examples/order_totals.py: right totals, each once, also after kills of its driver."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from rmqtools import Admin, Client, Message, Producer
from tests.support.cluster_scene import wait_until
from tests.support.reading import await_readable, read_all, stored
from tests.support.spark_processes import ROOT, environment

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.timeout(1800)]

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)
ITEMS = ("tea", "cup", "pot")
NO_ORDERS = (b"no JSON", b'{"item": "tea"}', b"\xff\xfe")
_SECONDS = 600
_STARTS = 5  # Spark gives a Python process ten seconds to start, which are short on a busy machine
Totals = dict[tuple[str, str], tuple[int, Decimal]]


class Shop:
    """Sends orders, and knows their totals by minute and item."""

    def __init__(self, producer: Producer, admin: Admin, topic: str) -> None:
        self._producer, self._admin, self._topic = producer, admin, topic
        self.totals: Totals = {}

    def send(self, minutes: range) -> None:
        """Send the orders of some minutes and three messages that are none; no order is a minute late."""
        self._store(NO_ORDERS)
        for minute in minutes:
            self._store([self._order(NOON + timedelta(minutes=minute, seconds=3 * n), n) for n in range(20)])

    def _order(self, created: datetime, number: int) -> bytes:
        item, price = ITEMS[number % 3], Decimal(number) + Decimal("0.99")
        key = (f"{created:%H:%M}", item)
        count, total = self.totals.get(key, (0, Decimal(0)))
        self.totals[key] = (count + 1, total + price)
        order = {"id": number, "item": item, "price": float(price), "created": created.isoformat()}
        return json.dumps(order).encode()

    def _store(self, bodies: Sequence[bytes]) -> None:
        messages = [Message(self._topic, body) for body in bodies]
        await_readable(self._admin, self._producer.send_many(messages))

    def before(self, minute: int) -> Totals:
        """The totals of the minutes before one: those that the watermark has passed."""
        end = f"{NOON + timedelta(minutes=minute):%H:%M}"
        return {key: total for key, total in self.totals.items() if key[0] < end}


def totals_in(client: Client, admin: Admin, topic: str) -> Totals:
    """The totals that are stored. Each comes once."""
    found: Totals = {}
    for message in read_all(client, admin, topic):
        row = json.loads(message.body, parse_float=Decimal)
        key = (row["minute"][11:16], row["item"])
        assert key not in found, f"{key} is stored twice"
        found[key] = (row["orders"], row["total"])
    return found


def command(name_server: str, folder: Path, topics: Sequence[str], *more: str) -> list[str]:
    names = zip(("--orders", "--totals", "--rejected"), topics, strict=True)
    flags = [word for pair in names for word in pair]
    where = ["--name-server", name_server, "--folder", str(folder)]
    return [sys.executable, str(ROOT / "examples" / "order_totals.py"), *where, *flags, *more]


def run_until_now(name_server: str, folder: Path, topics: Sequence[str]) -> None:
    for _ in range(_STARTS):
        done = subprocess.run(
            command(name_server, folder, topics, "--until-now"),
            env=environment(),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
        if "failed to connect back" not in " ".join(done.stderr.split()):
            break
    assert done.returncode == 0, done.stderr[-4000:]


@contextmanager
def running(name_server: str, folder: Path, topics: Sequence[str]) -> "Iterator[subprocess.Popen[bytes]]":
    """The pipeline while it runs; killed with all its processes at the end of the block."""
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            command(name_server, folder, topics),
            env=environment(),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


@pytest.fixture
def topics(make_topic: Callable[..., str]) -> list[str]:
    return [make_topic(queues=2) for _ in range(3)]


@pytest.mark.slow  # a Spark of its own
def test_totals_are_right_and_no_order_is_put_aside(local_cluster, admin, client, producer, topics, tmp_path):
    shop = Shop(producer, admin, topics[0])
    shop.send(range(5))
    run_until_now(local_cluster.name_server, tmp_path, topics)
    first = totals_in(client, admin, topics[1])
    shop.send(range(5, 10))
    run_until_now(local_cluster.name_server, tmp_path, topics)

    assert first == shop.before(3)  # the watermark is a minute behind the last order, at 12:04:57
    assert totals_in(client, admin, topics[1]) == shop.before(8)
    rejected = Counter(message.body for message in read_all(client, admin, topics[2]))
    assert rejected == Counter(dict.fromkeys(NO_ORDERS, 2))


@pytest.mark.slow
def test_totals_come_once_after_three_kills(local_cluster, admin, client, producer, topics, tmp_path):
    shop = Shop(producer, admin, topics[0])
    for start in (0, 3, 6):
        before = stored(admin, topics[1])
        shop.send(range(start, start + 3))
        for _ in range(_STARTS):
            with running(local_cluster.name_server, tmp_path, topics) as process:
                wait_until(lambda: stored(admin, topics[1]) > before or process.poll() is not None)  # noqa: B023
            if stored(admin, topics[1]) > before:
                break
        assert stored(admin, topics[1]) > before, (tmp_path / "log").read_text()[-4000:]
    run_until_now(local_cluster.name_server, tmp_path, topics)

    assert totals_in(client, admin, topics[1]) == shop.before(7)
    rejected = Counter(message.body for message in read_all(client, admin, topics[2]))
    assert rejected == Counter(dict.fromkeys(NO_ORDERS, 3))
