"""Every small example runs as it stands, and does what its README says."""

import os
import re
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from rmqtools import Admin
from rmqtools.cluster import LocalCluster
from tests.support.reading import await_stored

pytestmark = pytest.mark.broker

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
Run = Callable[..., str]
Fill = Callable[[str, str, int], None]


@pytest.fixture
def run(local_cluster: LocalCluster) -> Run:
    """``run("send.py", "--topic", "T")``; returns what it printed."""
    environment = {
        name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "NAMESRV_ADDR")
    }
    environment |= {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1",
    }  # a quick start

    def run(name: str, *arguments: str) -> str:
        ended = subprocess.run(
            [sys.executable, EXAMPLES / name, "--name-server", local_cluster.name_server, *arguments],
            env=environment,
            text=True,
            capture_output=True,
            timeout=600,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return run


@pytest.fixture
def fill(run: Run, admin: Admin) -> Fill:
    """``fill("send.py", "T", 99)``: send by an example and wait until all messages can be read."""
    sends_one_first = {"send.py": 1, "async_send.py": 0}

    def fill(name: str, topic: str, count: int) -> None:
        run(name, "--topic", topic, "--count", str(count))
        await_stored(admin, topic, count + sends_one_first[name])

    return fill


def test_create_topic(run: Run, admin: Admin) -> None:
    topic = f"test-{uuid.uuid4().hex[:12]}"

    printed = run("create_topic.py", "--topic", topic, "--queues", "2")

    assert printed.splitlines() == ["broker-a 0", "broker-a 1", "broker-b 0", "broker-b 1"]
    assert len(admin.fetch_subscribe_queues(topic)) == 4


def test_send(run: Run, make_topic: Callable[..., str], admin: Admin) -> None:
    topic = make_topic()

    printed = run("send.py", "--topic", topic, "--count", "20000").splitlines()

    assert printed[0].startswith("SEND_OK: broker-")
    assert sum(int(line.split()[1]) for line in printed[1:]) == 20_000
    assert await_stored(admin, topic, 20_001) == 20_001


def test_async_send(run: Run, make_topic: Callable[..., str], admin: Admin) -> None:
    topic = make_topic()

    printed = run("async_send.py", "--topic", topic, "--count", "100")

    assert printed == "100 messages stored in 8 queues\n"
    assert await_stored(admin, topic, 100) == 100


def test_read_range(run: Run, fill: Fill, make_topic: Callable[..., str]) -> None:
    topic = make_topic(queues=1)
    fill("async_send.py", topic, 30)

    printed = run("read_range.py", "--topic", topic)

    assert printed.splitlines() == [
        "broker-a queue 0: [0, 15): 15 messages",
        "broker-b queue 0: [0, 15): 15 messages",
        "30 messages in all",
    ]


def test_pull_consumer(run: Run, fill: Fill, make_topic: Callable[..., str]) -> None:
    topic, group = make_topic(queues=1), f"group-{uuid.uuid4().hex[:12]}"
    fill("async_send.py", topic, 30)

    printed = [run("pull_consumer.py", "--topic", topic, "--group", group) for _ in range(2)]

    assert printed[0].splitlines() == [
        "broker-a queue 0: 15 messages",
        "broker-b queue 0: 15 messages",
        "30 messages in all",
    ]
    assert printed[1] == "0 messages in all\n"


@pytest.mark.slow  # the pull example runs in make test
def test_push_consumer(run: Run, fill: Fill, make_topic: Callable[..., str]) -> None:
    topic = make_topic()
    fill("async_send.py", topic, 100)
    arguments = ("push_consumer.py", "--topic", topic, "--group", topic, "--seconds", "8")

    printed = run(*arguments).splitlines()
    again = run(*arguments)

    assert sum(int(line.split()[1]) for line in printed[:-1]) == 100
    assert re.fullmatch(r"100 messages, [1-9]\d* of them at the second try", printed[-1])
    assert again == "0 messages, 0 of them at the second try\n"


def test_orderly_consumer(run: Run, make_topic: Callable[..., str]) -> None:
    topic = make_topic()

    printed = run("orderly_consumer.py", "--topic", topic, "--group", topic)

    assert printed.splitlines() == [f"order-{n}: created paid? paid packed sent" for n in range(3)]


def test_pinned_consumer(run: Run, make_topic: Callable[..., str]) -> None:
    topic = make_topic()

    printed = run("pinned_consumer.py", "--topic", topic, "--group", topic)

    assert printed.splitlines() == [
        "no pins: 10.0.0.1 has 3, 10.0.0.2 has 3, 10.0.0.3 has 2",
        "pinned to 10.0.0.2: 10.0.0.1 has 0, 10.0.0.2 has 8, 10.0.0.3 has 0",
        "cleared: 10.0.0.1 has 3, 10.0.0.2 has 3, 10.0.0.3 has 2",
    ]


@pytest.mark.spark
@pytest.mark.slow  # the demo does the same
def test_spark_write_read(run: Run, make_topic: Callable[..., str]) -> None:
    topic = make_topic()

    printed = run("spark_write_read.py", "--topic", topic)

    assert printed.count("second| new|order-2|") == 1
    assert printed.count("third|NULL|   NULL|") == 1
    assert printed.endswith(f"3 messages in {topic}\n")


@pytest.mark.spark
@pytest.mark.slow  # a Spark of its own
def test_pinned_readers(run: Run, fill: Fill, make_topic: Callable[..., str]) -> None:
    topic = make_topic(queues=1)
    fill("async_send.py", topic, 30)

    printed = run("pinned_readers.py", "--topic", topic)

    assert printed.splitlines() == [
        "partition 0: 15 messages of broker-a/0",
        "partition 1: 15 messages of broker-b/0",
        f"30 messages of {topic}",
    ]


@pytest.mark.spark
@pytest.mark.slow  # a Spark of its own
def test_write_stamped(run: Run, make_topic: Callable[..., str], admin: Admin) -> None:
    topic = make_topic()

    printed = run("write_stamped.py", "--topic", topic)

    assert printed == "8 messages, 4 of them new orders\n"
    assert await_stored(admin, topic, 8) == 8


@pytest.mark.spark
@pytest.mark.slow  # a Spark of its own
def test_stream_to_parquet(run: Run, fill: Fill, make_topic: Callable[..., str], tmp_path: Path) -> None:
    topic = make_topic()
    fill("send.py", topic, 99)

    printed = run("stream_to_parquet.py", "--topic", topic, "--folder", str(tmp_path), "--max-offsets", "60")

    assert printed.splitlines() == [
        "100 messages read in 2 micro-batches",
        f"100 messages in {tmp_path / 'messages'}",
    ]


@pytest.mark.spark
@pytest.mark.slow  # a Spark of its own
def test_stream_windows(run: Run, fill: Fill, make_topic: Callable[..., str]) -> None:
    topic = make_topic()
    fill("send.py", topic, 9)

    *windows, last = run("stream_windows.py", "--topic", topic).splitlines()

    counts = Counter[str]()
    for line in windows:
        _, _, _, tag, count = line.split()
        counts[tag] += int(count)
    assert counts == {"greeting:": 1, "None:": 9}
    assert last == "0 messages wait"


@pytest.mark.spark
@pytest.mark.slow  # a Spark of its own
def test_spark35_read(run: Run, fill: Fill, make_topic: Callable[..., str]) -> None:
    """On Spark 3.5 itself: tests/spark/test_pyspark_versions.py."""
    topic = make_topic(queues=1)
    fill("send.py", topic, 100)

    *queues, total = run("spark35_read.py", "--topic", topic).splitlines()

    assert total == f"101 messages in {topic}"
    assert [line.split(":")[0] for line in queues] == ["broker-a queue 0", "broker-b queue 0"]


def test_every_example_is_in_the_readme_and_has_a_test() -> None:
    named = {path.name for path in EXAMPLES.glob("*.py")} - {"__init__.py"}
    unit_tests = [path.read_text() for path in (EXAMPLES.parent / "tests/unit/examples").glob("test_*.py")]
    files = ("test_demo.py", "test_order_totals.py", "test_sigterm.py")
    beside = [Path(__file__).with_name(name).read_text() for name in files]
    tests = "".join([Path(__file__).read_text(), *beside, *unit_tests])
    runnable = {name for name in named if not name.startswith("demo_")}

    assert {name for name in named if f"`{name}`" not in (EXAMPLES / "README.md").read_text()} == set()
    assert {name for name in runnable if name.removesuffix(".py") not in tests} == set()
