import pytest

from rmqtools.errors import BrokerError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.headers import NotifyConsumerIdsChangedRequestHeader
from rmqtools.protocol.wire.command import encode_command, request, response
from rmqtools.testing.fake.name_server import NameServer, Registered
from rmqtools.testing.fake.server import Server
from rmqtools.testing.fake.topics import TopicConfig, Topics
from tests.support.scripted_peer import ScriptedPeer, run
from tests.unit.engine.consumer.push_scene import agrees, pushing, until

MEMBERS = RequestCode.GET_CONSUMER_LIST_BY_GROUP


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
        scene.client.name_server._addrs = [name_server.addr]
        await scene.client.routes.refresh("T")


def test_the_first_broker_by_name_that_answers_tells_who_is_in_the_group():
    async def scenario():
        async with ScriptedPeer(lists("b1", "b2")).serving() as other, pushing(answer=lists("a1")) as scene:
            await route_to(scene, broker_b=other.addr, broker_a=scene.broker.addr)
            assert await scene.member.membership.find_members("T") == ("a1",)
            await route_to(scene, broker_b=other.addr, broker_a="127.0.0.1:1")
            assert await scene.member.membership.find_members("T") == ("b1", "b2")

    run(scenario)


def test_of_a_broker_whose_answer_cannot_be_read_the_next_one_is_asked(caplog):
    async def scenario():
        def garbled(request):
            return response(ResponseCode.SUCCESS, 0, body=b'{"consumerIdList":7}')

        async with ScriptedPeer(lists("b1")).serving() as other, pushing(answer=garbled) as scene:
            await route_to(scene, broker_a=scene.broker.addr, broker_b=other.addr)
            assert await scene.member.membership.find_members("T") == ("b1",)

    run(scenario)


def test_when_no_broker_answers_the_members_are_not_known():
    async def scenario():
        async with pushing() as scene:
            await route_to(scene, broker_a="127.0.0.1:1")
            assert await scene.member.membership.find_members("T") is None
            assert await scene.member.membership.find_members("unknown topic") is None

    run(scenario)


def test_who_joins_sends_heartbeats_first_and_hears_of_changes_of_its_own_group_only():
    changes = []

    async def scenario():
        async with pushing() as scene:
            await join(scene, lambda: changes.append(1))
            assert [one.code for one in scene.broker.requests] == [RequestCode.HEART_BEAT]
            for group in ("other", "g"):
                header = NotifyConsumerIdsChangedRequestHeader(consumer_group=group)
                await scene.broker.say(encode_command(request(header)))
            await until(lambda: changes)
            await scene.member.membership.leave()
            assert scene.asked(RequestCode.UNREGISTER_CLIENT)[0]["consumerGroup"] == "g"

    run(scenario)
    assert changes == [1]


def test_a_condition_is_looked_at_by_a_broker_before_the_group_is_joined():
    async def scenario():
        async with pushing(answer=refuses_condition) as scene:
            await route_to(scene, broker_a=scene.broker.addr)
            scene.member.subscriptions.want("T", sql="a is what")
            with pytest.raises(BrokerError, match="what is that"):
                await join(scene)
            assert scene.asked(RequestCode.HEART_BEAT) == []

    run(scenario)


def test_a_condition_on_a_topic_nobody_knows_yet_is_left_to_the_pulls():
    async def scenario():
        async with pushing(answer=refuses_condition) as scene:
            scene.member.subscriptions.want("T", sql="a > 1")
            await join(scene)
            await scene.member.membership.leave()

    run(scenario)
