"""Joining a group, and the list of its members: which broker is believed."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from rmqtools import aio
from rmqtools.errors import BrokerError, ConfigError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.policy.allocate.member_list import MemberList
from rmqtools.protocol.headers.group import NotifyConsumerIdsChangedRequestHeader
from rmqtools.protocol.wire.command import encode_command, request, response
from rmqtools.testing.fake.name_server import NameServer, Registered
from rmqtools.testing.fake.server import Server
from rmqtools.testing.fake.topics import TopicConfig, Topics
from tests.support.batch_topics import BATCH_CONFIG
from tests.support.scripted_peer import Script, ScriptedPeer
from tests.unit.engine.consumer.pull_scene import BrokerSet, config
from tests.unit.engine.consumer.push_scene import Scene, agrees, pushing, until

MEMBERS = RequestCode.GET_CONSUMER_LIST_BY_GROUP
CONNECTIONS = RequestCode.GET_CONSUMER_CONNECTION_LIST


def lists(*ids: str) -> Script:
    body = json.dumps({"consumerIdList": ids}).encode()
    return lambda asked: response(ResponseCode.SUCCESS, 0, body=body if asked.code == MEMBERS else b"")


def garbled(_):
    return response(ResponseCode.SUCCESS, 0, body=b'{"consumerIdList":7}')


def refuses_condition(asked):
    if asked.code == RequestCode.CHECK_CLIENT_CONFIG:
        return response(ResponseCode.SUBSCRIPTION_PARSE_FAILED, 0, remark="what is that?")
    return agrees(asked)


async def join(scene, on_change=lambda: None):
    await scene.member.membership.join(scene.member.data, on_change)


async def find(scene) -> MemberList:
    found: MemberList = await scene.member.membership.find_members("T")
    return found


async def route_to(scene, *addrs: str) -> None:
    """Let topic T have a queue on broker-0, broker-1 and so on, at these addresses."""
    topics = Topics(auto_create=False)
    topics.put("T", TopicConfig(1, 1))
    known = {
        f"broker-{number}": Registered(cluster="C", topics=topics, addrs={0: addr})
        for number, addr in enumerate(addrs)
    }
    async with Server(NameServer(known).handle).serving() as name_server:
        scene.client.remoting.name_servers.replace(name_server.addr)
        await scene.client.routes.refresh("T")


@asynccontextmanager
async def asking(answer: Script, *others: Script, **settings) -> AsyncIterator[Scene]:
    """A member of a group on brokers with these answers; the first one is the scene's."""
    async with AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(ScriptedPeer(other).serving()) for other in others]
        scene = await stack.enter_async_context(pushing(answer=answer, **settings))
        await route_to(scene, scene.broker.addr, *(peer.addr for peer in peers))
        yield scene


async def test_the_first_broker_by_name_tells_who_is_in_the_group():
    async with asking(lists("a1"), lists("b1", "b2")) as scene:
        assert await find(scene) == MemberList(("a1",))


async def test_of_a_broker_that_does_not_answer_the_next_one_is_asked():
    async with asking(lists("b1", "b2")) as scene:
        await route_to(scene, "127.0.0.1:1", scene.broker.addr)
        assert await find(scene) == MemberList(("b1", "b2"))


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(garbled, id="cannot-be-read"),
        pytest.param(lists("a1", "a1", "a2"), id="an-id-twice"),
    ],
)
async def test_a_list_that_cannot_be_believed_does_not_count_while_another_broker_has_one(first):
    async with asking(first, lists("a2", "a1")) as scene:
        assert await find(scene) == MemberList(("a2", "a1"))


async def test_if_it_has_other_members_too_queues_stay_for_one_round():
    async with asking(lists("a1", "a1", "a2"), lists("a1")) as scene:
        found = [await find(scene) for _ in range(3)]
        assert [one.is_settled for one in found] == [False, True, True]
        assert {one.client_ids for one in found} == {("a1",)}


async def test_if_every_list_has_doubles_the_entries_of_own_connections_are_taken_and_others_named_once(
    caplog,
):
    bodies: dict[int, bytes] = {}
    async with asking(lambda asked: response(0, 0, body=bodies.get(asked.code, b""))) as scene:
        await scene.client.remoting.connect(scene.broker.addr)
        own, client_id = scene.broker.peers[0].addr, scene.client.client_id
        bodies[MEMBERS] = json.dumps({"consumerIdList": [client_id, client_id]}).encode()
        listed = [{"clientId": client_id, "clientAddr": addr} for addr in ("10.0.0.1:1", own)]
        bodies[CONNECTIONS] = json.dumps({"connectionSet": listed}).encode()
        found = [await find(scene) for _ in range(2)]
        assert found == [MemberList((client_id, client_id), entries=(1,))] * 2
    assert caplog.text.count("client_id_shared") == 1
    assert "10.0.0.1:1" in caplog.text


async def test_if_the_broker_does_not_list_its_connections_all_entries_are_taken():
    ids: list[str] = []

    def answer(asked):
        return None if asked.code == CONNECTIONS else lists(*ids)(asked)

    async with asking(answer, request_timeout=0.5) as scene:
        ids += [scene.client.client_id, "x", scene.client.client_id]
        assert await find(scene) == MemberList(tuple(ids), entries=(0, 1))


async def test_a_member_whose_own_id_is_listed_once_asks_for_no_connections():
    async with asking(lists("x", "x", "me")) as scene:
        assert await find(scene) == MemberList(("x", "x", "me"))
        assert scene.asked(CONNECTIONS) == []


async def test_when_no_broker_answers_the_members_are_not_known():
    async with pushing() as scene:
        await route_to(scene, "127.0.0.1:1")
        assert await find(scene) is None
        assert await scene.member.membership.find_members("unknown topic") is None


async def test_who_joins_sends_heartbeats_first_and_hears_of_changes_of_its_own_group_only():
    changes = []

    async with pushing() as scene:
        await join(scene, lambda: changes.append(1))
        assert [one.code for one in scene.broker.requests] == [RequestCode.HEART_BEAT]
        for group in ("other", "g"):
            header = NotifyConsumerIdsChangedRequestHeader(consumer_group=group)
            await scene.broker.say(encode_command(request(header)))
        await until(lambda: changes)
        await scene.member.membership.leave()
        assert scene.asked(RequestCode.UNREGISTER_CLIENT)[0]["consumerGroup"] == "g"
    assert changes == [1]


async def test_a_condition_is_looked_at_by_a_broker_before_the_group_is_joined():
    async with asking(refuses_condition) as scene:
        scene.member.subscriptions.want("T", sql="a is what")
        with pytest.raises(BrokerError, match="what is that"):
            await join(scene)
        assert scene.asked(RequestCode.HEART_BEAT) == []


async def test_a_condition_on_a_topic_nobody_knows_yet_is_left_to_the_pulls():
    async with pushing(answer=refuses_condition) as scene:
        scene.member.subscriptions.want("T", sql="a > 1")
        await join(scene)
        await scene.member.membership.leave()


async def test_a_consumer_with_a_condition_on_stored_batches_does_not_start():
    brokers = BrokerSet()
    brokers.cluster.fault(code=RequestCode.CHECK_CLIENT_CONFIG, answer=response(ResponseCode.SUCCESS, 0))
    brokers.cluster.fault(code=RequestCode.GET_TOPIC_CONFIG, answer=BATCH_CONFIG)
    async with brokers.serving():
        consumer = aio.PullConsumer(config(brokers))
        consumer.subscribe("T", sql="a > 5")
        with pytest.raises(ConfigError, match="'T' has the queue type BatchCQ"):
            await consumer.start()
        assert brokers.of(RequestCode.HEART_BEAT) == []
