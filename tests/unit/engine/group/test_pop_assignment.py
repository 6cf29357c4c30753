"""A member whose share a broker computes: its requests, and the queues it then holds."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.consumer.push_consumer import PushConsumer
from rmqtools.engine.group.member import Member
from rmqtools.engine.group.pop_assignment import BrokerRebalance
from rmqtools.errors import ConfigError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.group import (
    MessageModel,
    MessageQueueAssignment,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
)
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import BrokerData, QueueData, TopicRouteData
from rmqtools.policy.allocate.averagely import AllocateAveragely
from rmqtools.policy.allocate.by_consistent_hash import AllocateByConsistentHash
from rmqtools.protocol.wire.bodies import format_body, parse_body
from rmqtools.protocol.wire.command import RemotingCommand, response
from tests.support.scripted_peer import ScriptedPeer
from tests.unit.engine.consumer.push_scene import QUEUE, pushing

POPPED = MessageQueue("T", "broker-a", -1)
PULLED = [MessageQueue("T", "broker-a", number) for number in range(2)]
RETRY = "%RETRY%g_T"
OFFSETS = {RequestCode.QUERY_CONSUMER_OFFSET: {"offset": "5"}}


def share(mode: str, *queues: MessageQueue) -> QueryAssignmentResponseBody:
    assignments = tuple(MessageQueueAssignment(message_queue=queue, mode=mode) for queue in queues)
    return QueryAssignmentResponseBody(message_queue_assignments=assignments)


class Broker:
    """Assigns what ``share`` says; holds pulls and pops."""

    def __init__(self) -> None:
        self.share = share("POP", POPPED)
        self.asked: list[QueryAssignmentRequestBody] = []

    def answer(self, request: RemotingCommand) -> RemotingCommand | None:
        if request.code in (RequestCode.PULL_MESSAGE, RequestCode.POP_MESSAGE):
            return None
        if request.code != RequestCode.QUERY_ASSIGNMENT:
            return response(ResponseCode.SUCCESS, 0, ext_fields=OFFSETS.get(RequestCode(request.code), {}))
        self.asked.append(parse_body(QueryAssignmentRequestBody, request.body))
        return response(ResponseCode.SUCCESS, 0, body=format_body(self.share))


def route_to(consumer: PushConsumer, addrs: dict[str, str]) -> None:
    """Let topic T have two queues on each of these brokers."""
    brokers = [BrokerData(broker_name=name, cluster="c", broker_addrs={0: addrs[name]}) for name in addrs]
    queues = [QueueData(broker_name=name, read_queue_nums=2, write_queue_nums=2, perm=6) for name in addrs]
    route = TopicRouteData(broker_datas=tuple(brokers), queue_datas=tuple(queues))
    consumer._client.routes.tables.update("T", route, publish_needed=True)


@asynccontextmanager
async def member(broker: Broker) -> AsyncIterator[tuple[PushConsumer, Member]]:
    """A member that holds nothing yet."""
    async with pushing(answer=broker.answer, client_rebalance=False) as scene:
        del scene.member.held.pulled[QUEUE]
        route_to(scene.consumer, {"broker-a": scene.broker.addr})
        try:
            yield scene.consumer, scene.member
        finally:
            for held in scene.member.held.pulled.values():
                held.drop()
            await scene.popper.close()


async def rebalance(consumer: PushConsumer) -> bool:
    rebalance = consumer._ownership.rounds._rebalance
    assert isinstance(rebalance, BrokerRebalance)
    return await rebalance.run(AllocateAveragely())


async def test_the_broker_is_asked_for_topic_group_member_and_strategy():
    broker = Broker()
    async with member(broker) as (consumer, _):
        await rebalance(consumer)

        assert broker.asked == [
            QueryAssignmentRequestBody(
                topic="T", consumer_group="g", client_id=consumer.client_id, strategy_name="AVG"
            )
        ]


async def test_queues_to_pop_are_popped_and_told_as_held():
    async with member(Broker()) as (consumer, group_member):
        assert await rebalance(consumer)
        assert list(group_member.held.popped) == [POPPED]
        assert group_member.held.pulled == {}
        assert group_member.held_queues() == [POPPED]


async def test_a_group_that_is_switched_to_pull_pulls_the_retry_topic_of_its_pops_too():
    broker = Broker()
    async with member(broker) as (consumer, group_member):
        await rebalance(consumer)
        popped = group_member.held.popped[POPPED]
        broker.share = share("PULL", *PULLED)

        assert await rebalance(consumer)
        assert popped.is_dropped
        assert group_member.held.popped == {}
        pulled = group_member.held.pulled
        assert {queue: pulled[queue].next_offset for queue in pulled} == dict.fromkeys(PULLED, 5)
        assert RETRY in group_member.subscriptions


async def test_a_group_that_is_switched_to_pop_gives_up_what_it_pulled():
    broker = Broker()
    broker.share = share("PULL", *PULLED)
    async with member(broker) as (consumer, group_member):
        await rebalance(consumer)
        held = list(group_member.held.pulled.values())
        broker.share = share("POP", POPPED)

        assert await rebalance(consumer)
        assert all(each.is_dropped for each in held)
        assert group_member.held.pulled == {}
        assert list(group_member.held.popped) == [POPPED]
        assert RETRY not in group_member.subscriptions


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"messageQueueAssignments":7}'])
async def test_of_a_broker_whose_assignment_cannot_be_read_the_next_one_is_asked(body):
    garbled = ScriptedPeer(
        lambda one: response(0, 0, body=body if one.code == RequestCode.QUERY_ASSIGNMENT else b"")
    )
    async with member(Broker()) as (consumer, group_member), garbled.serving():
        addr = consumer._client.routes.tables.broker_addrs["broker-a"][0]
        route_to(consumer, {"broker-0": garbled.addr, "broker-a": addr})
        assert await rebalance(consumer)
        assert list(group_member.held.popped) == [POPPED]


async def test_while_no_broker_knows_the_member_everything_stays_and_it_asks_again_soon():
    broker = Broker()
    async with member(broker) as (consumer, group_member):
        await rebalance(consumer)
        broker.share = QueryAssignmentResponseBody()

        assert not await rebalance(consumer)
        assert list(group_member.held.popped) == [POPPED]


async def test_a_retry_topic_that_is_not_there_yet_is_no_reason_to_ask_again():
    async with member(Broker()) as (consumer, group_member):
        group_member.subscriptions.want_all("%RETRY%g")

        assert await rebalance(consumer)


async def test_a_topic_that_is_not_subscribed_any_more_is_popped_no_more():
    async with member(Broker()) as (consumer, group_member):
        await rebalance(consumer)
        popped = group_member.held.popped[POPPED]
        consumer.unsubscribe("T")
        await rebalance(consumer)

        assert popped.is_dropped
        assert group_member.held.popped == {}


def test_a_strategy_that_brokers_do_not_know_is_refused():
    config = PushConsumerConfig(name_server="127.0.0.1:1", group="g", client_rebalance=False)

    with pytest.raises(ConfigError, match="brokers share queues out by AVG or AVG_BY_CIRCLE only"):
        PushConsumer(config, strategy=AllocateByConsistentHash())


@pytest.mark.parametrize("settings", [{"orderly": True}, {"message_model": MessageModel.BROADCASTING}])
def test_in_order_and_broadcasting_members_share_by_themselves(settings, tmp_path):
    settings |= {"client_rebalance": False, "offset_store_path": str(tmp_path / "offsets.json")}

    consumer = PushConsumer(PushConsumerConfig(name_server="127.0.0.1:1", group="g", **settings))

    assert not isinstance(consumer._ownership.rounds._rebalance, BrokerRebalance)
