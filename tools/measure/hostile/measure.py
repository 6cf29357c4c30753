"""Runs one hostile input in a process of its own, and measures what it costs.

Beside it a second client of the same process sends to a healthy cluster all the time: it shares the loop
thread, so its longest send shows how long the loop was blocked.
"""

import json
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from rmqtools import Message, Producer, ProducerConfig
from rmqtools.testing import FakeCluster
from tests.support.memory import forget_peak_memory, held_memory_bytes, peak_memory_bytes

MIB = 1024 * 1024
_MOST_MEMORY = 8 * 1024 * MIB  # a case that takes more ends with MemoryError, not with the machine
_PAUSE = 0.01  # seconds between two sends of the second client


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Cost of a hostile input: bytes, seconds, and how the call ended."""

    outcome: str
    grown_bytes: int = -1
    seconds: float = -1.0
    longest_send: float = -1.0
    busy_send: float = -1.0  # seconds of this process's CPU in one send, which a busy machine does not change

    def __str__(self) -> str:
        return (
            f"+{self.grown_bytes / MIB:,.0f} MiB | {self.seconds:.2f} s | {self.longest_send:.2f} s | "
            f"{self.outcome[:200]}"
        )


def measure(attack: Callable[[], str]) -> Measured:
    """Run ``attack`` in this process; it returns how its call ended."""
    with FakeCluster() as healthy, Producer(ProducerConfig(name_server=healthy.name_server)) as producer:
        healthy.create_topic("T", queues=1)
        producer.send(Message("T", b"first"))
        with _sending(producer) as (sends, busy):
            began_with = held_memory_bytes()
            forget_peak_memory()
            began = time.perf_counter()
            outcome = attack()
            seconds = time.perf_counter() - began
            grown = peak_memory_bytes() - began_with
        return Measured(
            outcome=outcome, grown_bytes=grown, seconds=seconds, longest_send=max(sends), busy_send=max(busy)
        )


def measure_apart(case: str, *, limit: float = 60.0) -> Measured:
    """Run a case of ``tools.measure.hostile.cases`` in a new process, which has ``limit`` seconds."""
    command = [sys.executable, "-m", "tools.measure.hostile.measure", case]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            out, errors = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            grown = peak_memory_bytes(child.pid)
            child.kill()
            return Measured(outcome=f"no end within {limit:.0f} s", grown_bytes=grown)
    if child.returncode:
        return Measured(outcome=f"ended with {child.returncode}: {errors[-2000:]}")
    return Measured(**json.loads(out.splitlines()[-1]))


@contextmanager
def _sending(producer: Producer) -> Iterator[tuple[list[float], list[float]]]:
    sends, busy = [0.0], [0.0]  # an attack may end before the first send
    over = threading.Event()

    def send_forever() -> None:
        while not over.wait(_PAUSE):
            began, busy_before = time.perf_counter(), time.process_time()
            producer.send(Message("T", b"body"), timeout=60)
            sends.append(time.perf_counter() - began)
            busy.append(time.process_time() - busy_before)

    thread = threading.Thread(target=send_forever)
    thread.start()
    try:
        yield sends, busy
    finally:
        over.set()
        thread.join()


def main(case: str) -> None:
    """Print what one case costs, as JSON."""
    from tools.measure.hostile.cases import CASES  # it imports this module

    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    with CASES[case].prepared() as attack:
        print(json.dumps(asdict(measure(attack))))


if __name__ == "__main__":
    main(sys.argv[1])
