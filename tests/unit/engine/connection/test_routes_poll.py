"""The route poll continues after a topic with any route."""

import json

import pytest

from rmqtools.config import ClientConfig
from rmqtools.engine.connection.client import ClientCore
from rmqtools.errors import ProtocolError
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.wire.command import RemotingCommand, response
from tests.support.scripted_peer import ScriptedPeer
from tests.support.scripted_transactions import until

ENDLESS = "a:" + "9" * 5000


class NameServer:
    """One broker; topic "bad" has the ``orderTopicConf`` of the moment."""

    def __init__(self) -> None:
        self.order_topic_conf = "a:2"
        self.queues = 1
        self.peer = ScriptedPeer(self._answer)

    def _answer(self, request: RemotingCommand) -> RemotingCommand:
        numbers = {"readQueueNums": self.queues, "writeQueueNums": self.queues, "perm": 6, "topicSysFlag": 0}
        route = {
            "brokerDatas": [{"brokerName": "a", "cluster": "C", "brokerAddrs": {"0": "127.0.0.1:1"}}],
            "queueDatas": [{"brokerName": "a"} | numbers],
        }
        if request.ext_fields["topic"] == "bad":
            route["orderTopicConf"] = self.order_topic_conf
        return response(0, 0, body=json.dumps(route).encode())


async def test_a_route_whose_order_cannot_be_read_is_a_protocol_error():
    server = NameServer()
    server.order_topic_conf = ENDLESS
    async with server.peer.serving():
        core = ClientCore(ClientConfig(name_server=server.peer.addr))
        core.start()
        with pytest.raises(ProtocolError, match="orderTopicConf"):
            await core.routes.refresh("bad")
        await core.close()


async def test_a_route_whose_order_cannot_be_read_ends_no_polls():
    server = NameServer()
    async with server.peer.serving():
        core = ClientCore(ClientConfig(name_server=server.peer.addr, poll_name_server_interval=0.01))
        core.start()
        await core.routes.refresh("bad")
        await core.routes.refresh("good")
        server.order_topic_conf, server.queues = ENDLESS, 3
        await until(lambda: len(core.routes.tables.publish["good"].queues) == 3)
        server.order_topic_conf = "a:1"
        await until(lambda: core.routes.tables.publish["bad"].queues == (MessageQueue("bad", "a", 0),))
        await core.close()
