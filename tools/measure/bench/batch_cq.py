"""``python -m tools.measure.bench.batch_cq``: what a batch costs a broker that keeps it as one message.

Columns are sent in turns to a plain topic and to a topic of the queue type BatchCQ, without and with
``inner_batches``. The table has medians. A round ends when all rows can be read.
"""

import argparse
import itertools
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rmqtools import Producer, ProducerConfig
from rmqtools.arrow import send_batches
from tools.measure.bench.broker import Broker, record_batch, running_broker
from tools.measure.bench.machine import machine_seconds, tree_seconds

_WAYS: Final = ("plain topic", "BatchCQ", "BatchCQ, inner_batches")
_ROWS = 10_000  # of a record batch, as Spark gives them
_FORM = "{:<24} {:>10} {:>10} {:>10} {:>8}"


@dataclass(frozen=True)
class Round:
    """Rows a second; processor time in microseconds and bytes of the commit log, for each row."""

    rate: float
    client_us: float
    broker_us: float
    stored_bytes: float


class Rounds:
    """Sends to a topic of each kind."""

    def __init__(self, broker: Broker, *, size: int, count: int) -> None:
        self._broker = broker
        self._batches = [record_batch(_ROWS, size)] * (count // _ROWS)
        self._count = count // _ROWS * _ROWS
        self._numbers = itertools.count()

    def run(self, way: str) -> Round:
        """One round, into a topic of its own."""
        topic = f"batches-{next(self._numbers)}"
        self._broker.make_topic(topic, queue_type="BatchCQ" if "BatchCQ" in way else "SimpleCQ")
        log, ours, brokers = self._log_bytes(), time.process_time(), tree_seconds(self._broker.pid)
        began = time.perf_counter()
        config = ProducerConfig(name_server=self._broker.name_server, inner_batches="inner" in way)
        with Producer(config) as producer:
            send_batches(producer, self._batches, topic=topic)
        client = time.process_time() - ours
        stored = self._broker.await_stored(topic, self._count)
        seconds = time.perf_counter() - began
        if stored != self._count:
            raise RuntimeError(f"{stored} of {self._count} rows stored in {topic} ({way})")
        return Round(
            rate=stored / seconds,
            client_us=client * 1e6 / stored,
            broker_us=(tree_seconds(self._broker.pid) - brokers) * 1e6 / stored,
            stored_bytes=(self._log_bytes() - log) / stored,
        )

    def _log_bytes(self) -> int:
        addr = self._broker.cluster.broker_addrs["broker-a"]
        return int(self._broker.admin.fetch_broker_runtime_info(addr)["commitLogMaxOffset"])


def _table(rounds: dict[str, list[Round]]) -> Iterator[str]:
    yield _FORM.format("", "rows/s", "client us", "broker us", "bytes")
    for way, done in rounds.items():
        rate, client, broker, stored = (
            statistics.median(column)
            for column in zip(
                *((one.rate, one.client_us, one.broker_us, one.stored_bytes) for one in done), strict=True
            )
        )
        yield _FORM.format(way, f"{rate:,.0f}", f"{client:.2f}", f"{broker:.2f}", f"{stored:.0f}")


def main() -> None:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=500_000, help="of a round (%(default)s)")
    parser.add_argument("--size", type=int, default=100, help="bytes of a body (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="after one to warm up (%(default)s)")
    options = parser.parse_args()
    began = machine_seconds()
    with running_broker() as broker:
        sends = Rounds(broker, size=options.size, count=options.rows)
        rounds: dict[str, list[Round]] = {way: [] for way in _WAYS}
        for number in range(options.rounds + 1):
            for way in _WAYS:
                done = sends.run(way)
                if number:
                    rounds[way].append(done)
            broker.drop_sent()
    print(*_table(rounds), sep="\n")
    print(
        f"{options.rows} rows of {options.size} bytes, {options.rounds} rounds; "
        f"{machine_seconds() - began:.0f} s of the machine's processors"
    )


if __name__ == "__main__":
    main()
