"""Mirrors whose source, target or brokers change: one test for each rule, which fails without it."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest

from rmqtools import ClientConfig, MessageQueue
from rmqtools.aio import Admin, Mirror
from rmqtools.errors import (
    BodyTooLargeError,
    BrokerError,
    ConfigError,
    DataLossError,
    ExactAppendError,
    SendError,
    TopicNotFoundError,
)
from rmqtools.model.append_mark import APPEND_MARK, AppendMark
from rmqtools.model.mirror import MIRROR_REFUSED
from rmqtools.model.names import pop_retry_topic
from rmqtools.model.sys_flag import COMPRESSED_FLAG
from rmqtools.testing import NAME_SERVER, FakeCluster, Reaction, RequestCode, ResponseCode
from rmqtools.testing.fake.state import refused
from tests.support.scripted_transactions import until
from tests.unit.engine.exact.test_mirror import TOPIC, bodies, clusters, copy, following, mirror, queue


async def die(dead: Mirror, *clusters: FakeCluster) -> None:
    """End a mirror as the end of its process does; brokers forget its locks a minute later."""
    for lane in dead._lanes.values():
        await lane._writer.abandon()
    for cluster in clusters:
        cluster.advance(61.0)


# the source


async def make_anew(cluster: FakeCluster) -> None:
    async with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        await admin.delete_topic(TOPIC)
    cluster.create_topic(TOPIC, queues=2)


@pytest.mark.parametrize(
    ("tags", "copied", "new", "text"),
    [
        pytest.param((), 3, 2, "ends at offset 2, .* deleted and made again", id="shorter"),
        pytest.param((), 3, 5, "another message at offset 2 .* deleted and made again", id="longer"),
        pytest.param(("yes",), 0, 9, "another message at offset 2", id="the-filter-let-nothing-through"),
    ],
)
async def test_a_source_topic_that_was_made_anew_stops_the_mirror(tags, copied, new, text):
    async with clusters() as (east, west):
        east.store(TOPIC, b"1", b"2", b"3", queue=queue(), tags="no")
        assert await copy(east, west, tags=tags) == copied
        await make_anew(east)
        east.advance(1.0)
        east.store(TOPIC, *[b"new"] * new, queue=queue(), tags="yes")

        with pytest.raises(DataLossError, match=text):
            await copy(east, west, tags=tags)
        assert bodies(west) == [b"1", b"2", b"3"][:copied]


async def test_a_source_made_anew_is_noticed_though_it_grows_beyond_the_position_meanwhile():
    async with clusters() as (east, west):
        east.store(TOPIC, b"1", b"2", b"3", queue=queue())
        await copy(east, west)
        await make_anew(east)
        east.advance(1.0)
        east.store(TOPIC, b"new", b"new", queue=queue())
        looks = count(1)

        def grow(_: object) -> Reaction:
            if next(looks) == 2:
                asyncio.get_running_loop().call_soon(lambda: east.store(TOPIC, *[b"new"] * 3, queue=queue()))
            return Reaction.PASS

        east.fault(code=RequestCode.GET_MAX_OFFSET, topic=TOPIC, queue_id=0, times=None, answer=grow)
        with pytest.raises(DataLossError, match="another message at offset 2"):
            await copy(east, west)
        assert bodies(west) == [b"1", b"2", b"3"]


async def test_a_source_that_lost_its_end_is_noticed_by_a_mirror_that_runs():
    async with clusters() as (east, west), mirror(east, west) as copying:
        east.store(TOPIC, b"1", b"2", b"3", queue=queue())
        running = asyncio.create_task(copying.run(follow=True))
        await until(lambda: len(bodies(west)) == 3)
        east.end_at(queue(), 1)
        east.advance(1.0)
        east.store(TOPIC, *[b"new"] * 4, queue=queue())

        with pytest.raises(DataLossError, match="another message at offset 2"):
            await running


async def test_a_mirror_goes_on_at_its_stored_position_where_nothing_was_to_be_copied():
    async with clusters() as (east, west):
        east.store(TOPIC, *[b"no"] * 5, queue=queue(), tags="no")
        await copy(east, west, tags=("yes",))
        east.begin_at(queue(), 5)  # what was left out has expired
        east.store(TOPIC, b"yes", queue=queue(), tags="yes")

        assert await copy(east, west, tags=("yes",)) == 1


async def test_a_mirror_goes_on_though_all_its_copies_have_expired():
    async with clusters() as (east, west):
        east.store(TOPIC, b"1", b"2", queue=queue())
        await copy(east, west)
        west.store(TOPIC, b"foreign", queue=queue())
        west.begin_at(queue(), 3)
        east.store(TOPIC, b"3", queue=queue())
        assert await copy(east, west) == 1

        assert bodies(west) == [b"3"]


async def test_a_time_is_past_when_the_clock_of_the_sources_broker_says_so():
    async with clusters() as (east, west), mirror(east, west) as copying:
        east.advance(1000.0)  # its clock is ahead
        until_ms = copying._source._client.clock.now_ms() + 500_000
        for number in range(4):
            east.store(TOPIC, b"%d" % number, queue=queue(), store_timestamp_ms=until_ms - 2 + number)
        await copying.run(until_ms=until_ms)

        assert bodies(west) == [b"0", b"1"]


# copies that other programs send again


def send_again(cluster: FakeCluster, count: int) -> None:
    for message in cluster.messages(TOPIC, queue())[:count]:
        kept = {APPEND_MARK: message.properties[APPEND_MARK]}
        cluster.store(TOPIC, message.body, queue=queue(), properties=kept)


@pytest.mark.parametrize("seconds", [0.0, 15.0], ids=["no position stored", "position stored"])
async def test_old_copies_behind_the_last_one_do_not_set_a_mirror_back_that_was_killed(seconds):
    async with clusters() as (east, west):
        east.store(TOPIC, *[b"%d" % number for number in range(1000)], queue=queue())
        async with mirror(east, west) as copying:
            async with following(copying):
                await until(lambda: len(bodies(west)) == 1000)
                await asyncio.sleep(seconds)
            await die(copying, west)
        send_again(west, 100)

        assert await copy(east, west) == 0


# pairs


async def test_queues_whose_broker_is_down_at_a_start_are_awaited_and_then_copied():
    brokers = ("broker-a", "broker-b")
    async with FakeCluster(brokers, cluster="east") as east, FakeCluster(cluster="west") as west:
        east.create_topic(TOPIC, queues=1)
        west.create_topic(TOPIC, queues=2)
        for name in brokers:
            east.store(TOPIC, name.encode(), queue=MessageQueue(TOPIC, name, 0))
        await copy(east, west)
        east.store(TOPIC, b"more", queue=MessageQueue(TOPIC, "broker-b", 0))
        east.stop("broker-b", in_route=False)
        async with mirror(east, west) as copying:
            running = asyncio.create_task(copying.run())
            await until(lambda: any("broker is down" in each.waits_for for each in copying.progress()))
            await asyncio.sleep(5.0)
            assert not running.done()
            east.restart("broker-b")
            await running

        assert sorted(message.body for message in west.messages(TOPIC)) == [b"broker-a", b"broker-b", b"more"]


async def test_routes_that_no_name_server_tells_are_awaited(caplog):
    async with clusters(queues=1) as (east, west), mirror(east, west) as copying:
        east.store(TOPIC, b"later", queue=queue())
        west.stop(NAME_SERVER)
        running = asyncio.create_task(copying.run())
        await until(lambda: "routes_awaited" in caplog.text)
        west.restart(NAME_SERVER)
        await running

        assert bodies(west) == [b"later"]


async def test_a_topic_that_no_name_server_knows_for_a_while_is_awaited_by_a_mirror_that_has_copied(caplog):
    async with clusters(queues=1) as (east, west), mirror(east, west) as copying, following(copying):
        east.store(TOPIC, b"first", queue=queue())
        await until(lambda: bodies(west))
        west.stop("broker-a", in_route=False)
        await until(lambda: "routes_awaited" in caplog.text)
        west.restart("broker-a")
        east.store(TOPIC, b"second", queue=queue())
        await until(lambda: len(bodies(west)) == 2)


@pytest.mark.parametrize("topics", [{"missing": TOPIC}, {TOPIC: "missing"}], ids=["source", "target"])
async def test_a_topic_that_is_missing_from_the_start_is_an_error(topics):
    async with clusters(queues=1) as (east, west):
        with pytest.raises(TopicNotFoundError, match="missing"):
            async with asyncio.timeout(60):
                await copy(east, west, topics=topics)


async def test_queues_that_are_added_join_a_running_mirror():
    async with clusters(queues=1) as (east, west), mirror(east, west) as copying, following(copying):
        await until(lambda: copying.progress() and not copying.progress()[0].waits_for)
        east.create_topic(TOPIC, queues=2)
        east.store(TOPIC, b"added", queue=queue(1))
        await until(lambda: any("add one" in each.waits_for for each in copying.progress()))
        west.create_topic(TOPIC, queues=2)
        await until(lambda: bodies(west, 1))

        assert bodies(west, 1) == [b"added"]


async def test_a_queue_without_a_place_in_the_target_is_refused_without_follow():
    async with clusters(queues=1) as (east, west):
        await copy(east, west)
        east.create_topic(TOPIC, queues=2)

        with pytest.raises(ConfigError, match="has 1 queue for which"):
            await copy(east, west)


async def test_another_name_of_the_mirror_does_not_copy_everything_again_by_accident():
    async with clusters() as (east, west):
        east.store(TOPIC, b"1", queue=queue())
        await copy(east, west)

        with pytest.raises(ExactAppendError, match="go on with the name 'east'"):
            await copy(east, west, source_name="first")
        assert await copy(east, west, source_name="first", name="east") == 0
        assert await copy(east, west, source_name="first", is_new=True) == 1


async def test_a_mirror_of_0_3_0_goes_on_and_its_positions_are_stored_then():
    async with clusters() as (east, west):
        east.store(TOPIC, b"0", b"1", queue=queue(1))
        for number in (0, 1):
            mark = str(AppendMark(number, "east", f"east/{TOPIC}/broker-a/1"))
            west.store(TOPIC, b"%d" % number, queue=queue(0), properties={APPEND_MARK: mark})
        west.commit("RMQTOOLS_EXACT-east", queue(0), 1)  # the offset of its last message
        east.store(TOPIC, b"2", queue=queue(1))
        assert await copy(east, west) == 1

        assert bodies(west) == [b"0", b"1", b"2"]
        assert west.committed("RMQTOOLS_EXACT-east%NEXT", queue(0)) == 3


async def test_a_queue_that_another_mirror_of_this_name_has_paired_is_refused():
    async with clusters() as (east, west), mirror(east, west) as late:
        pairing = await late._fetch_pairing(TOPIC)
        lane = late._lane(queue(1), queue(0))  # as of a mirror that has seen other queues
        async with mirror(east, west) as first:
            await first.run()
        lane.note_width(pairing.width)

        with pytest.raises(ExactAppendError, match="has copies of another queue than"):
            await lane.run(follow=False, until_ms=None)


# messages that the target refuses


def refuse_poison(cluster: FakeCluster) -> None:
    def judge(request):
        return ResponseCode.MESSAGE_ILLEGAL if b"poison" in request.body else Reaction.PASS

    for code in (RequestCode.SEND_BATCH_MESSAGE, RequestCode.SEND_MESSAGE_V2):
        cluster.fault(code=code, times=None, answer=judge)


@asynccontextmanager
async def poisoned() -> AsyncIterator[tuple[FakeCluster, FakeCluster]]:
    """Clusters with a message that the target refuses, in the middle of others."""
    async with clusters() as (east, west):
        for cluster in (east, west):
            cluster.create_topic("other", queues=1)
            cluster.create_topic("refused", queues=1)
        east.store(TOPIC, *[b"%d" % number for number in range(10)], queue=queue())
        east.store(TOPIC, b"poison", queue=queue())
        east.store(TOPIC, *[b"%d" % number for number in range(10, 20)], queue=queue())
        east.store("other", b"x", b"y")
        refuse_poison(west)
        yield east, west


BOTH = {TOPIC: TOPIC, "other": "other"}
REST = [b"%d" % number for number in range(20)]


async def test_a_refused_message_stops_its_topic_and_no_other():
    async with (
        poisoned() as (east, west),
        mirror(east, west, topics=BOTH) as copying,
        following(copying) as running,
    ):
        await until(lambda: any(each.error for each in copying.progress()))
        east.store("other", b"z")
        await until(lambda: len(west.messages("other")) == 3)
        assert not running.done()

        assert b"10" not in bodies(west)
        assert {each.source.topic for each in copying.progress() if each.error} == {TOPIC}


async def test_a_run_that_ends_raises_the_refusal():
    async with poisoned() as (east, west), mirror(east, west, topics=BOTH) as copying:
        with pytest.raises(SendError, match="did not take 1 message"):
            await copying.run()

        assert len(west.messages("other")) == 2


async def test_refused_messages_can_be_skipped_and_are_counted():
    async with poisoned() as (east, west), mirror(east, west, refused="skip") as copying:
        first, _ = await copying.run()

        assert bodies(west) == REST
        assert (first.copied, first.refused, first.left_out, first.lag) == (20, 1, 0, 0)


async def test_refused_messages_can_go_to_a_topic_of_their_own():
    async with poisoned() as (east, west), mirror(east, west, refused="refused") as copying:
        await copying.run()

        (message,) = west.messages("refused")
        assert bodies(west) == REST
        assert message.properties[MIRROR_REFUSED].startswith("broker-a/0/10: ")
        assert message.body == b"refused"  # its own body is refused there, too


RETRY = "%RETRY%billing"


UNREADABLE = zlib.compress(b"x" * 2000)  # with ``max_decompressed_bytes`` = 1000


@asynccontextmanager
async def unreadable_retry(**settings: Any) -> AsyncIterator[tuple[Mirror, FakeCluster]]:
    """A mirror of a retry topic with a body that cannot be read, in the middle of others, and its target."""
    async with clusters() as (east, west):
        for topic in (RETRY, "refused"):
            for cluster in (east, west):
                cluster.create_topic(topic, queues=1)
        east.store(RETRY, b"1")
        east.store(RETRY, UNREADABLE, sys_flag=COMPRESSED_FLAG)
        east.store(RETRY, b"2")
        source = ClientConfig(name_server=east.name_server, max_decompressed_bytes=1000)
        async with mirror(east, west, source=source, topics={RETRY: RETRY}, **settings) as copying:
            yield copying, west


async def test_a_body_of_a_retry_topic_that_cannot_be_read_stops_the_topic_and_is_named():
    async with unreadable_retry() as (copying, west):
        with pytest.raises(BodyTooLargeError, match=r"offset 1 of .*max_decompressed_bytes=1000"):
            await copying.run()

        assert [message.body for message in west.messages(RETRY)] == [b"1"]


@pytest.mark.parametrize(
    ("choice", "elsewhere"),
    [pytest.param("skip", [], id="skipped"), pytest.param("refused", [UNREADABLE], id="kept")],
)
async def test_a_body_of_a_retry_topic_that_cannot_be_read_is_refused(choice, elsewhere):
    async with unreadable_retry(refused=choice) as (copying, west):
        (progress,) = await copying.run()

        assert [message.body for message in west.messages(RETRY)] == [b"1", b"2"]
        assert [message.body for message in west.messages("refused")] == elsewhere
        assert (progress.copied, progress.refused, progress.lag) == (2, 1, 0)


async def test_a_busy_page_cache_is_no_refusal():
    busy = "[PC_SYNCHRONIZED]broker busy, start flow control for a while"
    async with clusters() as (east, west):
        east.store(TOPIC, b"1", b"2", queue=queue())
        west.fault(
            code=RequestCode.SEND_BATCH_MESSAGE, times=3, answer=refused(ResponseCode.SYSTEM_ERROR, busy)
        )

        assert await copy(east, west) == 2


# groups


async def test_a_group_is_not_moved_to_a_copy_that_is_behind_or_not_known():
    async with clusters() as (east, west), mirror(east, west) as copying:
        east.store(TOPIC, *[b"%d" % number for number in range(20)], queue=queue())
        east.commit("readers", queue(), 15)
        with pytest.raises(ConfigError, match="is not known"):
            await copying.move_group("readers")
        await copy(east, west)
        east.store(TOPIC, b"more", b"more", queue=queue())
        east.commit("readers", queue(), 22)
        with pytest.raises(ConfigError, match="is 2 messages behind the group"):
            await copying.move_group("readers")

        assert west.committed("readers", queue()) is None


@pytest.mark.parametrize("topic", ["%RETRY%readers", pop_retry_topic(TOPIC, "readers")])
async def test_a_group_with_failed_messages_is_not_moved(topic):
    async with clusters() as (east, west), mirror(east, west) as copying:
        east.store(TOPIC, b"1", queue=queue())
        await copying.run()
        east.commit("readers", queue(), 1)
        east.create_topic(topic, queues=1)
        east.store(topic, b"1")

        with pytest.raises(ConfigError, match=f"1 failed messages in '{topic}'"):
            await copying.move_group("readers")


@pytest.mark.parametrize(
    "code", [ResponseCode.NO_PERMISSION, ResponseCode.SYSTEM_BUSY, ResponseCode.SYSTEM_ERROR]
)
async def test_a_broker_that_does_not_list_members_is_an_error(code):
    async with clusters() as (east, west), mirror(east, west) as copying:
        east.commit("readers", queue(), 0)
        await copying.run()
        west.add_member("readers", "member-1")
        west.fault(code=RequestCode.GET_CONSUMER_LIST_BY_GROUP, times=None, answer=code)
        west.fault(code=RequestCode.GET_CONSUMER_CONNECTION_LIST, times=None, answer=code)

        with pytest.raises(BrokerError):
            await copying.move_group("readers")
        assert west.committed("readers", queue()) is None


# waits


async def test_a_mirror_that_waits_for_a_lock_says_so_and_knows_its_lag():
    async with clusters() as (east, west):
        east.store(TOPIC, *[b"%d" % number for number in range(20)], queue=queue())
        async with mirror(east, west) as copying:
            await copying.run()
            await die(copying)
        east.store(TOPIC, *[b"more"] * 5, queue=queue())
        async with mirror(east, west) as second:
            running = asyncio.create_task(second.run())
            await until(lambda: second.progress() and second.progress()[0].lag)
            first = second.progress()[0]
            west.advance(61.0)
            await running

        assert (first.lag, first.is_known, first.copied) == (5, True, 0)
        assert "lock of group 'RMQTOOLS_EXACT-east'" in first.waits_for
        assert second.progress()[0].waits_for == ""
