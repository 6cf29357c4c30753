"""What pull consumers commit, on a scripted broker set."""

import pytest

from rmqtools import aio
from rmqtools.errors import BrokerError, ClientStateError, ConfigError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.group import MessageModel
from rmqtools.model.queue import MessageQueue
from rmqtools.testing import Reaction
from tests.unit.engine.consumer.pull_scene import Q0, TOPIC, BrokerSet, polled, reading
from tests.unit.engine.consumer.pull_script import answered
from tests.unit.engine.consumer.push_scene import idle, until

OFTEN = {"auto_commit_interval": 1e-6}


async def test_a_poll_commits_what_was_handed_out_before_it_and_nothing_else():
    brokers = BrokerSet(30)
    async with reading(brokers, **OFTEN) as consumer:
        for _ in range(3):
            await consumer.poll(5, 5)
        await until(lambda: brokers.committed == {0: 10})


async def poll_twelve(consumer: aio.PullConsumer) -> None:
    assert len(await consumer.poll(5, 12)) == 12


async def iterate_over_twelve(consumer: aio.PullConsumer) -> None:
    async for message in consumer:
        if message.queue_offset == 11:
            break


@pytest.mark.parametrize("read", [poll_twelve, iterate_over_twelve])
@pytest.mark.parametrize("end", [aio.PullConsumer.close, aio.PullConsumer.commit])
async def test_a_close_and_a_commit_count_what_was_handed_out_since_the_start(read, end):
    brokers = BrokerSet(30)
    async with reading(brokers) as consumer:
        await read(consumer)
        await end(consumer)
        assert brokers.committed == {0: 12}


async def test_a_block_left_by_an_error_commits_without_the_last_poll():
    async def fail_after_two_polls(brokers):
        async with reading(brokers) as consumer:
            await consumer.poll(5, 12)
            await consumer.poll(5, 12)
            raise ZeroDivisionError

    brokers = BrokerSet(30)
    with pytest.raises(ZeroDivisionError):
        await fail_after_two_polls(brokers)
    assert brokers.committed == {0: 12}


async def test_an_error_in_an_iteration_commits_up_to_the_message_it_was_about():
    async def fail_at(brokers, offset):
        async with reading(brokers) as consumer:
            async for message in consumer:
                if message.queue_offset == offset:
                    raise ZeroDivisionError

    brokers = BrokerSet(30)
    with pytest.raises(ZeroDivisionError):
        await fail_at(brokers, 14)
    assert brokers.committed == {0: 14}


async def test_without_auto_commit_nothing_is_committed_but_by_commit_and_pulls_carry_no_offset():
    brokers = BrokerSet(30)
    async with reading(brokers, auto_commit=False, persist_consumer_offset_interval=0.01) as consumer:
        await polled(consumer, 30)
        await until(lambda: brokers.pulls()[-1] == 30)
        assert await consumer.committed(Q0) is None
        await consumer.commit()
        assert await consumer.committed(Q0) == 30
        await consumer.seek(Q0, 5)
        await polled(consumer, 3)
        assert brokers.updates == [(0, 30)]
    assert brokers.updates == [(0, 30), (0, 30)]  # told again in the end: a broker may have lost it
    assert {
        int(request.ext_fields["sysFlag"] or 0) & 1 for request in brokers.of(RequestCode.PULL_MESSAGE)
    } == {0}


async def test_without_auto_commit_a_queue_that_is_given_up_is_not_committed():
    brokers = BrokerSet(30)
    async with reading(brokers, auto_commit=False) as consumer:
        await polled(consumer, 10)
        await polled(consumer, 10)
        consumer.unsubscribe(TOPIC)
        await until(lambda: consumer.queues == [])
    assert brokers.updates == []


@pytest.mark.parametrize("auto_commit", [True, False])
async def test_a_queue_that_lost_messages_with_a_master_is_not_committed_before_its_messages_are(auto_commit):
    moved = answered(ResponseCode.PULL_OFFSET_MOVED, 4, stored=(0, 4))
    brokers = BrokerSet(10)
    brokers.cluster.fault(
        code=RequestCode.PULL_MESSAGE,
        times=None,
        answer=lambda request: moved if request.ext_fields["queueOffset"] == "10" else Reaction.PASS,
    )
    async with reading(brokers, auto_commit=auto_commit, auto_commit_interval=3600.0) as consumer:
        messages = await consumer.poll(5, 10)
        await until(lambda: 4 in brokers.pulls())
        await idle()

        assert (len(messages), brokers.committed.get(0, 0)) == (10, 0)
        await consumer.commit()
        assert brokers.committed == {0: 4}


@pytest.mark.parametrize(
    ("end", "expected"),
    [pytest.param(4, 0, id="lost-with-a-master"), pytest.param(10, 4, id="set-by-an-administrator")],
)
async def test_an_error_in_a_block_after_a_move_leaves_the_last_poll_uncommitted_unless_it_was_asked_for(
    end, expected
):
    async def fail_after_move():
        async with reading(brokers) as consumer:
            assert len(await consumer.poll(5, 10)) == 10
            await until(lambda: 4 in brokers.pulls())
            raise ZeroDivisionError

    moved = answered(ResponseCode.PULL_OFFSET_MOVED, 4, stored=(0, end))
    brokers = BrokerSet(10)
    brokers.cluster.fault(
        code=RequestCode.PULL_MESSAGE,
        times=None,
        answer=lambda request: moved if request.ext_fields["queueOffset"] == "10" else Reaction.PASS,
    )
    with pytest.raises(ZeroDivisionError):
        await fail_after_move()
    assert brokers.committed.get(0, 0) == expected


async def test_a_sought_offset_can_be_committed():
    async with reading(BrokerSet(30)) as consumer:
        await consumer.seek(Q0, 17)
        await consumer.commit()
        assert await consumer.committed(Q0) == 17


async def test_commit_says_when_a_broker_has_not_stored_it():
    brokers = BrokerSet(30)
    async with reading(brokers) as consumer:
        await consumer.poll(5)
        brokers.refused = {RequestCode.UPDATE_CONSUMER_OFFSET}
        with pytest.raises(BrokerError, match="scripted"):
            await consumer.commit()
        brokers.refused = set()
        await consumer.commit()
        assert brokers.committed == {0: 10}


async def test_offsets_that_cannot_be_committed_are_refused_before_anything_is_sent():
    brokers = BrokerSet(30)
    async with reading(brokers) as consumer:
        with pytest.raises(ConfigError, match=r"cannot commit offset -1 of .*want 0 or more"):
            await consumer.commit({Q0: -1})
        with pytest.raises(ClientStateError, match=r"queueId=9. is not held"):
            await consumer.commit({Q0: 1, MessageQueue(TOPIC, "broker-a", 9): 1})
        assert brokers.updates == []


async def test_broadcasting_a_restarted_member_finds_its_file_without_any_setting(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))

    brokers = BrokerSet(30)
    async with reading(brokers, message_model=MessageModel.BROADCASTING) as consumer:
        await polled(consumer, 12)
    assert brokers.updates == []
    async with reading(BrokerSet(30), message_model=MessageModel.BROADCASTING) as consumer:
        assert await consumer.committed(Q0) == 12
        assert await polled(consumer, 1) == [12]


async def test_an_idle_consumer_tells_a_broker_that_was_away_its_offset_again():
    brokers = BrokerSet(10)
    async with reading(brokers, persist_consumer_offset_interval=0.01) as consumer:
        await polled(consumer, 10)
        await consumer.commit()
        await until(lambda: brokers.pulls()[-1] == 10)
        brokers.forget_offsets()  # killed before it had written them to its disk
        brokers.cluster.disconnect("broker-a")
        await until(lambda: brokers.committed == {0: 10})
