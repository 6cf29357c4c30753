import asyncio
import subprocess
import sys
import threading

import pytest

from rmqtools.engine.group import local_offset_store
from rmqtools.engine.group.local_offset_store import LocalFileOffsetStore
from rmqtools.errors import ConfigError
from rmqtools.model.queue import MessageQueue

QUEUE = MessageQueue("T", "broker-a", 0)
OTHER = MessageQueue("T", "broker-b", 1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "group" / "offsets.json"


def written(path, *offsets: int) -> None:
    """Store these offsets of QUEUE one after the other."""
    store = LocalFileOffsetStore(path)
    for offset in offsets:
        store.update(QUEUE, offset)
        asyncio.run(store.persist([QUEUE]))


def kept(path) -> dict[MessageQueue, int]:
    """What a restarted member finds."""
    return LocalFileOffsetStore(path).noted()


def test_offsets_are_found_again_those_of_queues_not_named_too(path):
    store = LocalFileOffsetStore(path)
    store.update(QUEUE, 5)
    store.update(OTHER, 7)
    asyncio.run(store.persist([QUEUE]))

    assert kept(path) == {QUEUE: 5, OTHER: 7}
    assert asyncio.run(LocalFileOffsetStore(path).read_store(OTHER)) == 7


def test_the_file_of_the_java_client_is_understood(path):
    path.parent.mkdir()
    path.write_text('{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:12\n}}')

    assert kept(path) == {QUEUE: 12}


@pytest.mark.parametrize("torn", [b"", b"{", b'{"offsetTable":{"a":1}}', b"\xff\xfe", b"null"])
def test_a_torn_file_is_replaced_by_its_backup_and_the_log_says_so(path, torn, caplog):
    written(path, 5, 6)
    path.write_bytes(torn)

    assert kept(path) == {QUEUE: 5}
    assert "consumer_offsets_unreadable" in caplog.text


def test_a_crash_between_the_two_renames_costs_nothing(path):
    written(path, 5, 6)
    path.replace(path.with_name("offsets.json.bak"))

    assert kept(path) == {QUEUE: 6}


def test_where_file_and_backup_are_torn_the_error_names_the_file_and_the_remedy(path):
    written(path, 5, 6)
    path.write_bytes(b"{")
    path.with_name("offsets.json.bak").write_bytes(b"{")

    with pytest.raises(ConfigError, match=r"offsets\.json and its backup are unreadable: mend or remove"):
        LocalFileOffsetStore(path)


def test_a_file_that_cannot_be_written_is_logged_and_written_the_next_time(path, caplog):
    path.parent.write_text("in the way")
    store = LocalFileOffsetStore(path)
    store.update(QUEUE, 5)
    asyncio.run(store.persist([QUEUE]))
    assert "consumer_offsets_not_stored" in caplog.text

    path.parent.unlink()
    asyncio.run(store.persist([QUEUE]))
    assert kept(path) == {QUEUE: 5}


def test_a_write_whose_task_was_cancelled_does_not_meet_the_next_one(path, monkeypatch):
    begun, go_on, replace = threading.Event(), threading.Event(), local_offset_store._replace

    def slowly(path, offsets):
        if not begun.is_set():
            begun.set()
            go_on.wait(5)
        replace(path, offsets)

    async def scenario():
        store = LocalFileOffsetStore(path)
        store.update(QUEUE, 5)
        monkeypatch.setattr(local_offset_store, "_replace", slowly)
        first = asyncio.create_task(store.persist([QUEUE]))
        await asyncio.to_thread(begun.wait, 5)
        first.cancel()
        store.update(QUEUE, 6)
        second = asyncio.create_task(store.persist([QUEUE]))
        await asyncio.sleep(0.01)
        assert not second.done()
        go_on.set()
        await second

    asyncio.run(scenario())
    assert kept(path) == {QUEUE: 6}


def test_a_queue_given_up_keeps_its_offset(path):
    store = LocalFileOffsetStore(path)
    store.update(QUEUE, 5)
    store.remove(QUEUE)

    assert store.noted() == {QUEUE: 5}


def test_a_link_planted_in_the_place_of_the_new_file_keeps_its_target(path):
    target = path.parent / "target"
    path.parent.mkdir()
    target.write_text("mine")
    path.with_name("offsets.json.tmp").symlink_to(target)

    written(path, 5)

    assert target.read_text() == "mine"
    assert kept(path) == {QUEUE: 5}


AT_EXIT = """
import atexit, sys, threading
from rmqtools import *

name_server, path = sys.argv[1:]
heard = threading.Semaphore(0)
consumer = PushConsumer(PushConsumerConfig(
    name_server=name_server, group="at-exit", offset_store_path=path,
    message_model=MessageModel.BROADCASTING, consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    persist_consumer_offset_interval=3600.0,
))
consumer.subscribe("T", lambda messages, context: heard.release())
atexit.register(consumer.close)  # no executor takes work then
consumer.start()
print(sum(heard.acquire(timeout=20) for _ in range(8)))
"""


@pytest.mark.process
def test_a_broadcasting_consumer_that_is_closed_at_exit_stores_its_offsets(fake_rocketmq, path):
    fake_rocketmq.create_topic("T", queues=1)
    fake_rocketmq.store("T", *[b"x"] * 8)
    command = [sys.executable, "-c", AT_EXIT, fake_rocketmq.name_server, str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert (ended.stdout, ended.stderr, ended.returncode) == ("8\n", "", 0)
    assert kept(path) == {QUEUE: 8}
