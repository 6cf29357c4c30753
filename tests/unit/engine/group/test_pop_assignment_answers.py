"""Assignments that cannot be read."""

from contextlib import AsyncExitStack

import pytest

from rmqtools.model.codes import RequestCode
from rmqtools.model.route import BrokerData, QueueData, TopicRouteData
from rmqtools.protocol.wire.command import response
from tests.support.scripted_peer import ScriptedPeer
from tests.unit.engine.group.test_pop_assignment import POPPED, Broker, member, rebalance


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"messageQueueAssignments":7}'])
async def test_of_a_broker_whose_assignment_cannot_be_read_the_next_one_is_asked(body):
    def garbled(request):
        return response(0, 0, body=body if request.code == RequestCode.QUERY_ASSIGNMENT else b"")

    broker = Broker()
    async with AsyncExitStack() as stack:
        consumer, group_member = await stack.enter_async_context(member(broker))
        first = await stack.enter_async_context(ScriptedPeer(garbled).serving())
        tables = consumer._client.routes.tables
        addrs = {"broker-0": {0: first.addr}, "broker-a": dict(tables.broker_addrs["broker-a"])}
        route = TopicRouteData(
            broker_datas=tuple(
                BrokerData(broker_name=name, cluster="c", broker_addrs=known) for name, known in addrs.items()
            ),
            queue_datas=tuple(
                QueueData(broker_name=name, read_queue_nums=2, write_queue_nums=2, perm=6) for name in addrs
            ),
        )
        tables.update("T", route, publish_needed=True)
        assert await rebalance(consumer)
        assert list(group_member.held.popped) == [POPPED]
