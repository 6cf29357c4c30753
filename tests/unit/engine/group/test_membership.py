import json

import pytest

from rmqtools.errors import BrokerError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.policy.allocate.member_list import MemberList
from rmqtools.protocol.headers.group import NotifyConsumerIdsChangedRequestHeader
from rmqtools.protocol.wire.command import encode_command, request, response
from rmqtools.testing.fake.name_server import NameServer, Registered
from rmqtools.testing.fake.server import Server
from rmqtools.testing.fake.topics import TopicConfig, Topics
from tests.support.scripted_peer import ScriptedPeer
from tests.unit.engine.consumer.push_scene import agrees, pushing, until

MEMBERS = RequestCode.GET_CONSUMER_LIST_BY_GROUP
CONNECTIONS = RequestCode.GET_CONSUMER_CONNECTION_LIST


def lists(*ids: str):
    quoted = ",".join(f'"{one}"' for one in ids)

    def answer(request):
        body = f'{{"consumerIdList":[{quoted}]}}'.encode() if request.code == MEMBERS else b""
        return response(ResponseCode.SUCCESS, 0, body=body)

    return answer


def refuses_condition(request):
    if request.code == RequestCode.CHECK_CLIENT_CONFIG:
        return response(ResponseCode.SUBSCRIPTION_PARSE_FAILED, 0, remark="what is that?")
    return agrees(request)


async def join(scene, on_change=lambda: None):
    await scene.member.membership.join(scene.member.data, on_change)


async def route_to(scene, **brokers: str) -> None:
    """Let topic T have a queue on each of these brokers."""
    topics = Topics(auto_create=False)
    topics.put("T", TopicConfig(1, 1))
    known = {
        name.replace("_", "-"): Registered(cluster="C", topics=topics, addrs={0: addr})
        for name, addr in brokers.items()
    }
    async with Server(NameServer(known).handle).serving() as name_server:
        scene.client.remoting.name_servers.replace(name_server.addr)
        await scene.client.routes.refresh("T")


async def test_the_first_broker_by_name_that_answers_tells_who_is_in_the_group():
    async with ScriptedPeer(lists("b1", "b2")).serving() as other, pushing(answer=lists("a1")) as scene:
        await route_to(scene, broker_b=other.addr, broker_a=scene.broker.addr)
        assert await scene.member.membership.find_members("T") == MemberList(("a1",))
        await route_to(scene, broker_b=other.addr, broker_a="127.0.0.1:1")
        assert await scene.member.membership.find_members("T") == MemberList(("b1", "b2"))


async def test_of_a_broker_whose_answer_cannot_be_read_the_next_one_is_asked(caplog):
    def garbled(request):
        return response(ResponseCode.SUCCESS, 0, body=b'{"consumerIdList":7}')

    async with ScriptedPeer(lists("b1")).serving() as other, pushing(answer=garbled) as scene:
        await route_to(scene, broker_a=scene.broker.addr, broker_b=other.addr)
        assert await scene.member.membership.find_members("T") == MemberList(("b1",))


async def test_a_list_with_an_id_twice_is_not_believed_while_another_broker_has_one_without():
    doubled = lists("a1", "a1", "a2")
    async with ScriptedPeer(lists("a2", "a1")).serving() as other, pushing(answer=doubled) as scene:
        await route_to(scene, broker_a=scene.broker.addr, broker_b=other.addr)
        assert await scene.member.membership.find_members("T") == MemberList(("a2", "a1"))


async def test_if_it_has_other_members_too_queues_stay_for_one_round():
    doubled = lists("a1", "a1", "a2")
    async with ScriptedPeer(lists("a1")).serving() as other, pushing(answer=doubled) as scene:
        await route_to(scene, broker_a=scene.broker.addr, broker_b=other.addr)
        found = [await scene.member.membership.find_members("T") for _ in range(3)]
        assert [one.is_settled for one in found] == [False, True, True]
        assert {one.client_ids for one in found} == {("a1",)}


async def test_if_every_list_has_doubles_the_entries_of_own_connections_are_taken_and_others_named_once(
    caplog,
):
    bodies: dict[int, bytes] = {}

    def answer(request):
        return response(ResponseCode.SUCCESS, 0, body=bodies.get(request.code, b""))

    async with pushing(answer=answer) as scene:
        await route_to(scene, broker_a=scene.broker.addr)
        await scene.client.remoting.connect(scene.broker.addr)
        own = scene.broker.peers[0].addr
        client_id = scene.client.client_id
        bodies[MEMBERS] = json.dumps({"consumerIdList": [client_id, client_id]}).encode()
        listed = [{"clientId": client_id, "clientAddr": addr} for addr in ("10.0.0.1:1", own)]
        bodies[CONNECTIONS] = json.dumps({"connectionSet": listed}).encode()
        found = [await scene.member.membership.find_members("T") for _ in range(2)]
        assert found == [MemberList((client_id, client_id), entries=(1,))] * 2
    assert caplog.text.count("client_id_shared") == 1
    assert "10.0.0.1:1" in caplog.text


async def test_if_the_broker_does_not_list_its_connections_all_entries_are_taken():
    ids: list[str] = []

    def answer(request):
        return None if request.code == CONNECTIONS else lists(*ids)(request)

    async with pushing(answer=answer, request_timeout=0.5) as scene:
        await route_to(scene, broker_a=scene.broker.addr)
        ids += [scene.client.client_id, "x", scene.client.client_id]
        found = await scene.member.membership.find_members("T")
        assert found == MemberList(tuple(ids), entries=(0, 1))


async def test_a_member_whose_own_id_is_listed_once_asks_for_no_connections():
    async with pushing(answer=lists("x", "x", "me")) as scene:
        await route_to(scene, broker_a=scene.broker.addr)
        assert await scene.member.membership.find_members("T") == MemberList(("x", "x", "me"))
        assert scene.asked(CONNECTIONS) == []


async def test_when_no_broker_answers_the_members_are_not_known():
    async with pushing() as scene:
        await route_to(scene, broker_a="127.0.0.1:1")
        assert await scene.member.membership.find_members("T") is None
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
    async with pushing(answer=refuses_condition) as scene:
        await route_to(scene, broker_a=scene.broker.addr)
        scene.member.subscriptions.want("T", sql="a is what")
        with pytest.raises(BrokerError, match="what is that"):
            await join(scene)
        assert scene.asked(RequestCode.HEART_BEAT) == []


async def test_a_condition_on_a_topic_nobody_knows_yet_is_left_to_the_pulls():
    async with pushing(answer=refuses_condition) as scene:
        scene.member.subscriptions.want("T", sql="a > 1")
        await join(scene)
        await scene.member.membership.leave()
