import asyncio

import pytest

from rmqtools.config import ClientConfig
from rmqtools.engine.connection.name_server import NameServerClient
from rmqtools.engine.connection.remoting import Remoting
from rmqtools.errors import BrokerError, RemotingConnectError, TopicNotFoundError
from rmqtools.protocol.wire.command import response
from tests.support.scripted_peer import ScriptedPeer

TOPICS = b'{"topicList":["a"]}'


def asking(*addrs: str, timeout: float = 0.4) -> tuple[Remoting, NameServerClient]:
    """A client that begins with the first of ``addrs``."""
    remoting = Remoting(ClientConfig(name_server=";".join(addrs)))
    return remoting, NameServerClient(remoting, first=0, timeout=timeout)


async def test_a_name_server_that_failed_is_not_asked_first_again():
    answering, silent = ScriptedPeer(lambda _: response(0, 0, body=TOPICS)), ScriptedPeer()
    async with answering.serving(), silent.serving():
        remoting, client = asking(silent.addr, answering.addr)
        answers = [await client.fetch_topic_list() for _ in range(5)]
        await remoting.close()
    assert answers == [("a",)] * 5
    assert (len(silent.requests), len(answering.requests)) == (1, 5)


async def test_look_ups_at_the_same_time_all_find_the_one_that_is_alive():
    answering, silent = ScriptedPeer(lambda _: response(0, 0, body=TOPICS)), ScriptedPeer()
    async with answering.serving(), silent.serving():
        remoting, client = asking(silent.addr, answering.addr)
        answers = await asyncio.gather(*(client.fetch_topic_list() for _ in range(4)))
        await remoting.close()
    assert answers == [("a",)] * 4


async def test_when_none_answers_each_is_named():
    remoting, client = asking("127.0.0.1:1", "127.0.0.1:2", timeout=0.1)
    with pytest.raises(RemotingConnectError, match=r"127\.0\.0\.1:1: .*; .*127\.0\.0\.1:2: "):
        await client.fetch_topic_list()
    await remoting.close()


@pytest.mark.parametrize(("code", "kind"), [(17, TopicNotFoundError), (1, BrokerError)])
async def test_a_no_is_believed_and_nobody_else_is_asked(code, kind):
    first, second = ScriptedPeer(lambda _: response(code, 0, remark="no")), ScriptedPeer()
    async with first.serving(), second.serving():
        remoting, client = asking(first.addr, second.addr)
        with pytest.raises(kind, match="no"):
            await client.fetch_route("T")
        await remoting.close()
    assert (len(first.requests), len(second.requests)) == (1, 0)
