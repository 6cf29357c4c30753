"""The route poll continues after a topic with any route; sends that begin together share look-ups."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from rmqtools import ClientConfig, MessageQueue
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.routes import Routes
from rmqtools.errors import ProtocolError
from rmqtools.model.codes import ResponseCode
from rmqtools.policy.publish import TopicPublishInfo
from rmqtools.policy.route_update import DEFAULT_TOPIC
from rmqtools.protocol.wire.command import RemotingCommand, encode_command, response
from tests.support.scripted_peer import ScriptedPeer
from tests.support.scripted_transactions import until

ENDLESS = "a:" + "9" * 5000


class NameServer:
    """One broker; topic "bad" has the ``orderTopicConf`` of the moment."""

    def __init__(self) -> None:
        self.order_topic_conf = "a:2"
        self.queues = 1
        self.peer = ScriptedPeer(self.answer)

    def answer(self, request: RemotingCommand) -> RemotingCommand:
        numbers = {"readQueueNums": self.queues, "writeQueueNums": self.queues, "perm": 6, "topicSysFlag": 0}
        route = {
            "brokerDatas": [{"brokerName": "a", "cluster": "C", "brokerAddrs": {"0": "127.0.0.1:1"}}],
            "queueDatas": [{"brokerName": "a"} | numbers],
        }
        if request.ext_fields["topic"] == "bad":
            route["orderTopicConf"] = self.order_topic_conf
        return response(0, 0, body=json.dumps(route).encode())


@asynccontextmanager
async def polling(name_server: ScriptedPeer, *, interval: float = 0.01) -> AsyncIterator[Routes]:
    """The routes of a client that polls its name server, by default all the time."""
    async with name_server.serving():
        core = ClientCore(ClientConfig(name_server=name_server.addr, poll_name_server_interval=interval))
        core.start()
        yield core.routes
        await core.close()


async def test_a_route_whose_order_cannot_be_read_is_a_protocol_error_and_ends_no_polls():
    server = NameServer()
    async with polling(server.peer) as routes:
        await routes.refresh("bad")
        await routes.refresh("good")
        server.order_topic_conf, server.queues = ENDLESS, 3
        with pytest.raises(ProtocolError, match="orderTopicConf"):
            await routes.refresh("bad")
        await until(lambda: len(routes.tables.publish["good"].queues) == 3)
        server.order_topic_conf = "a:1"
        await until(lambda: routes.tables.publish["bad"].queues == (MessageQueue("bad", "a", 0),))


async def test_sends_that_begin_one_step_after_another_all_find_the_route_of_a_topic_that_brokers_create():
    server = NameServer()

    def answer(request: RemotingCommand) -> RemotingCommand:
        if request.ext_fields["topic"] == DEFAULT_TOPIC:
            return server.answer(request)
        return response(ResponseCode.TOPIC_NOT_EXIST, 0)

    async with polling(ScriptedPeer(answer)) as routes:
        sends: list[asyncio.Task[TopicPublishInfo]] = []
        while not any(send.done() for send in sends):
            sends.append(asyncio.create_task(routes.publish_info("new", default_topic_queue_nums=4)))
            await asyncio.sleep(0)
        found = await asyncio.gather(*sends)

    assert {len(info.queues) for info in found} == {1}


async def test_a_late_route_of_the_default_topic_does_not_replace_that_of_a_topic_made_meanwhile():
    server = NameServer()
    late: list[RemotingCommand] = []

    def answer(request: RemotingCommand) -> RemotingCommand | None:
        if request.ext_fields["topic"] == DEFAULT_TOPIC:
            late.append(request)
            return None
        return server.answer(request) if late else response(ResponseCode.TOPIC_NOT_EXIST, 0)

    peer = ScriptedPeer(answer)
    async with polling(peer, interval=30.0) as routes:
        sending = asyncio.create_task(routes.publish_info("new", default_topic_queue_nums=2))
        await until(lambda: late)
        server.queues = 3
        await routes.refresh("new")
        await peer.say(encode_command(server.answer(late[0]), opaque=late[0].opaque))

        assert len((await sending).queues) == 3
