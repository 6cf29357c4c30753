"""Stamps, a copied topic and the loss policy, with the driver killed in the middle of its micro-batches."""

import random
import shutil
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any

import pytest

from rmqtools import Admin, ClientConfig, Message, Producer, ProducerConfig
from spark_connector import drop_duplicates
from tests.spark.killed_driver import KilledDriver
from tests.spark.streams import PLACE, stored_places
from tests.support.reading import await_readable
from tests.support.resting import RestingCluster
from tools.measure.faults.site import LocalSite

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ROWS, PER_BATCH = 3000, 1000
KILLS, PORTION, BROKER_DIES = 10, 500, (3, 7)
ONE_QUEUE: dict[str, Any] = {"queues": 1, "broker_names": ["broker-a"]}


@dataclass(frozen=True)
class Outcome:
    """What was seen: messages stored when the driver was killed, and the error of each job afterwards."""

    topics: dict[str, str]
    driver: KilledDriver
    stored_at_kill: dict[str, int]
    errors: dict[str, str | None]


def make_topic(admin: Admin, *, queues: int = 2, **settings: Any) -> str:
    topic = f"killed-{uuid.uuid4().hex[:12]}"
    admin.create_topic(topic, read_queue_nums=queues, write_queue_nums=queues, **settings)
    return topic


def send(name_server: str, admin: Admin, topic: str, count: int, *, first: int = 0) -> None:
    """Send rows of half a KB, each of its own, and wait until they can be read."""
    messages = [
        Message(topic, b"%06d" % number + b"." * 500, keys=[f"k{number}"], properties={"colour": "blue"})
        for number in range(first, first + count)
    ]
    with Producer(ProducerConfig(name_server=name_server, group="tests")) as producer:
        await_readable(admin, producer.send_many(messages))


def writes_of(
    name_server: str, topics: dict[str, str], *, per_batch: int, copying: dict[str, str], **held: int
) -> dict[str, dict[str, object]]:
    """Jobs that write a topic to others: two streams, with so many rows in a micro-batch, and a copy."""
    source = {"nameServer": name_server, "topic": topics["source"], "startingOffsets": "earliest"}
    limited = source | {"maxOffsetsPerTrigger": str(per_batch)}

    def to(name: str, **options: str) -> dict[str, str]:
        return {"nameServer": name_server, "topic": topics[name], "stamp": "true", **options}

    copied = to("copied", stampId="night", idColumn="keys", **copying)
    return {
        "streamed": {"job": "write_stream", "source": limited, "target": to("streamed"), **held},
        "for_each": {"job": "write_each_batch", "source": limited, "target": to("for_each"), **held},
        "copied": {"job": "copy", "source": source, "target": copied},
    }


def held_jobs(name_server: str, topics: dict[str, str]) -> dict[str, dict[str, object]]:
    """Each stream is held up in its second micro-batch; one of them reads two topics and allows losses."""
    two = {"topics": f"{topics['healthy']},{topics['gone']}", "startingOffsets": "earliest"}
    lenient = {"nameServer": name_server, "maxOffsetsPerTrigger": "400", "failOnDataLoss": "false", **two}
    held = {"hold_from": 1}
    writes = writes_of(name_server, topics, per_batch=PER_BATCH, copying={"keepQueue": "true"}, **held)
    return writes | {"lenient": {"job": "write_files", "source": lenient, **held}}


@pytest.fixture(scope="module")
def outcome(local_cluster, admin, tmp_path_factory):
    """All jobs, killed in micro-batch 1 and started again; topic ``gone`` is deleted in between."""
    name_server = local_cluster.name_server
    topics = {name: make_topic(admin) for name in ("streamed", "for_each", "copied")}
    topics |= {name: make_topic(admin, **ONE_QUEUE) for name in ("source", "healthy", "gone")}
    for name, count in {"source": ROWS, "healthy": 500, "gone": 500}.items():
        send(name_server, admin, topics[name], count)
    driver = KilledDriver(tmp_path_factory.mktemp("killed"), held_jobs(name_server, topics), admin)
    streams = ("streamed", "for_each", "lenient")
    with driver.running():
        driver.await_true(
            lambda: (
                driver.stored("copied")
                and driver.stored("streamed") > PER_BATCH
                and driver.stored("for_each") >= 2 * PER_BATCH
                and all(driver.batches(name, kind="offsets") == 2 for name in streams)
            )
        )
    assert [driver.batches(name) for name in streams] == [1] * 3
    stored = {name: driver.stored(name) for name in ("streamed", "for_each", "copied")}
    admin.delete_topic(topics["gone"])
    send(name_server, admin, topics["healthy"], 100)
    return Outcome(topics, driver, stored, driver.finish())


def bodies(frame):
    return Counter(bytes(row.body) for row in frame.select("body").collect())


@pytest.mark.parametrize("name", ["streamed", "for_each"])
def test_stamped_rows_of_a_killed_micro_batch_are_dropped_once(outcome, read, name):
    stored = read(topic=outcome.topics[name])

    assert outcome.errors[name] is None
    assert stored.count() >= ROWS - PER_BATCH + outcome.stored_at_kill[name] > ROWS
    sent = bodies(read(topic=outcome.topics["source"]))
    assert bodies(drop_duplicates(stored)) == Counter({b"new-" + body: 1 for body in sent})


def test_a_topic_is_copied_once_by_a_job_that_was_killed(outcome, read):
    def rows(frame):
        found = frame.select("brokerName", "queueId", "body", "keys", "properties.colour").collect()
        return Counter(map(tuple, found))

    stored = read(topic=outcome.topics["copied"])

    assert outcome.errors["copied"] is None
    assert stored.count() >= ROWS + outcome.stored_at_kill["copied"] > ROWS
    source = rows(read(topic=outcome.topics["source"]))
    assert set(rows(stored)) == set(source)
    assert rows(drop_duplicates(stored)) == source
    assert set(source.values()) == {1}


def test_a_topic_deleted_after_the_kill_does_not_wedge_a_stream_that_allows_losses(outcome, spark, admin):
    frame = spark.read.parquet(str(outcome.driver.folder / "lenient" / "rows")).select(*PLACE)
    places = Counter(map(tuple, frame.collect()))

    healthy = Counter(
        {place: count for place, count in places.items() if place[0] == outcome.topics["healthy"]}
    )
    assert outcome.errors["lenient"] is None
    assert healthy == stored_places(admin, outcome.topics["healthy"])
    assert len(healthy) == 600
    assert set(places.values()) == {1}


class Faults:
    """Kills a driver at moments that a seed decides, each after something was seen of the run."""

    def __init__(self, driver: KilledDriver, seed: int) -> None:
        self._driver = driver
        self._dice = random.Random(seed)

    def moment(self) -> Callable[[], bool]:
        """The next moment, counted from now: rows sent, micro-batches ended, or a file begun."""
        driver, dice = self._driver, self._dice
        kind = dice.choice(("rows", "rows", "batches", "file"))
        if kind == "file":
            return lambda: driver.is_writing("read")
        if kind == "batches":
            name, more = dice.choice(("streamed", "for_each", "files")), dice.randrange(3)
            ended = driver.batches(name)
            return lambda: driver.batches(name) > ended + more
        name, more = dice.choice(("streamed", "for_each", "copied")), dice.randrange(400)
        stored = driver.stored(name)
        return lambda: driver.stored(name) > stored + more

    def pause(self) -> None:
        """Up to half a second, of whatever the driver is doing."""
        Event().wait(self._dice.uniform(0, 0.5))


@pytest.mark.timeout(3600)
def test_jobs_of_a_driver_killed_ten_times_and_of_a_broker_killed_twice_lose_nothing(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ten")
    with (
        RestingCluster(brokers=2) as cluster,
        Admin(ClientConfig(name_server=cluster.name_server, request_timeout=10.0)) as admin,
    ):
        name_server, site = cluster.name_server, LocalSite(cluster)
        topics = {name: make_topic(admin, queues=1) for name in ("source", "streamed", "for_each", "copied")}
        driver = KilledDriver(folder, ten_jobs(name_server, topics), admin)
        faults = Faults(driver, seed=18)
        for run in range(KILLS):
            send(name_server, admin, topics["source"], PORTION, first=run * PORTION)
            shutil.rmtree(folder / "read" / "rows", ignore_errors=True)
            moment = faults.moment()
            with driver.running():
                driver.await_true(moment)
                if run in BROKER_DIES:
                    site.kill("broker-b")
                    site.start("broker-b")
                    stored = driver.stored("streamed")
                    send(name_server, admin, topics["source"], PORTION, first=(KILLS + run) * PORTION)
                    driver.await_true(partial(lambda before: driver.stored("streamed") > before, stored))
                faults.pause()
        errors = driver.finish()

        def read(name):
            options = {"nameServer": name_server, "topic": topics[name]}
            return spark.read.format("rocketmq").options(**options).load()

        sent = bodies(read("source"))
        once = Counter({b"new-" + body: 1 for body in sent})
        assert errors == dict.fromkeys(ten_jobs(name_server, topics))
        assert sum(sent.values()) == len(sent) == (KILLS + len(BROKER_DIES)) * PORTION
        for name in ("streamed", "for_each"):
            assert bodies(drop_duplicates(read(name))) == once, name
        assert bodies(drop_duplicates(read("copied"))) == sent
        rows = spark.read.parquet(str(folder / "read" / "rows"))
        assert bodies(rows.selectExpr("CAST(body AS BINARY) AS body")) == once
        files = spark.read.parquet(str(folder / "files" / "rows")).select(*PLACE)
        assert Counter(map(tuple, files.collect())) == stored_places(admin, topics["source"])
        print({name: driver.stored(name) - len(sent) for name in ("streamed", "for_each", "copied")}, "twice")


def ten_jobs(name_server: str, topics: dict[str, str]) -> dict[str, dict[str, object]]:
    """Batch read, batch write, streams into a topic and into files; no stream is held up."""
    writes = writes_of(name_server, topics, per_batch=150, copying={})
    files = {"job": "write_files", "source": writes["streamed"]["source"]}
    return writes | {"files": files, "read": {"job": "read_batch", "source": writes["copied"]["source"]}}
