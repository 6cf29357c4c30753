import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from rmqtools import ClientConfig, ClusterInfo
from rmqtools.engine.connection.name_server import NameServerClient
from rmqtools.engine.connection.remoting import Remoting
from rmqtools.errors import BrokerError, RemotingConnectError, RemotingError, TopicNotFoundError
from rmqtools.model.codes import RequestCode
from rmqtools.protocol.headers.topic import WipeWritePermOfBrokerRequestHeader
from rmqtools.protocol.wire.command import RemotingCommand, response
from tests.support.scripted_peer import ScriptedPeer

TOPICS = b'{"topicList":["a"]}'
ROUTE = b'{"queueDatas":[],"brokerDatas":[]}'
BROKER = b'{"brokerName":"b","brokerAddrs":{0:"h:1"},"cluster":"c"}'
BROKERS = b'{"brokerAddrTable":{"b":' + BROKER + b'},"clusterAddrTable":{"c":["b"]}}'

TELLING = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: response(0, 0, body=ROUTE),
    RequestCode.GET_BROKER_CLUSTER_INFO: response(0, 0, body=BROKERS),
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: response(0, 0, body=TOPICS),
}
RESTARTED = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: response(17, 0, remark="No topic route info"),
    RequestCode.GET_BROKER_CLUSTER_INFO: response(0, 0, body=b"{}"),
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: response(0, 0, body=b'{"topicList":[]}'),
}
NOT_READY = dict.fromkeys(TELLING, response(1, 0, remark="name server not ready"))

LOOK_UPS = pytest.mark.parametrize(
    "look_up",
    [
        pytest.param(lambda client: client.fetch_route("T"), id="route"),
        pytest.param(lambda client: client.fetch_cluster_info(), id="brokers"),
        pytest.param(lambda client: client.fetch_topic_list(), id="topics"),
    ],
)


def answering(answers: dict[RequestCode, RemotingCommand]) -> ScriptedPeer:
    """A name server with one answer to each request."""
    return ScriptedPeer(lambda command: answers[RequestCode(command.code)])


@asynccontextmanager
async def asking(*servers: ScriptedPeer | str, timeout: float = 0.4) -> AsyncIterator[NameServerClient]:
    """A client that begins with the first of ``servers``; a text is an address without a listener."""
    async with AsyncExitStack() as stack:
        for server in servers:
            if isinstance(server, ScriptedPeer):
                await stack.enter_async_context(server.serving())
        addrs = [server if isinstance(server, str) else server.addr for server in servers]
        remoting = Remoting(ClientConfig(name_server=";".join(addrs)))
        stack.push_async_callback(remoting.close)
        yield NameServerClient(remoting, first=0, timeout=timeout)


def asked(*servers: ScriptedPeer) -> list[int]:
    """How many requests came to each."""
    return [len(server.requests) for server in servers]


async def test_a_name_server_that_failed_is_not_asked_first_again():
    silent, full = ScriptedPeer(), answering(TELLING)
    async with asking(silent, full) as client:
        assert [await client.fetch_topic_list() for _ in range(5)] == [("a",)] * 5
    assert asked(silent, full) == [1, 5]


async def test_the_log_says_once_that_a_name_server_answers_again(caplog):
    caplog.set_level("INFO")
    answers = [None, *[response(0, 0, body=TOPICS)] * 3]
    async with asking(ScriptedPeer(lambda _: answers.pop(0)), timeout=0.1) as client:
        with pytest.raises(RemotingError):
            await client.fetch_topic_list()
        again = [await client.fetch_topic_list() for _ in range(3)]

    assert again == [("a",)] * 3
    assert caplog.text.count("name_server_answers_again") == 1


async def test_look_ups_at_the_same_time_all_find_the_one_that_is_alive():
    async with asking(ScriptedPeer(), answering(TELLING)) as client:
        answers = await asyncio.gather(*(client.fetch_topic_list() for _ in range(4)))
    assert answers == [("a",)] * 4


async def test_when_none_answers_each_is_named():
    async with asking("127.0.0.1:1", "127.0.0.1:2", timeout=0.1) as client:
        with pytest.raises(RemotingConnectError, match=r"127\.0\.0\.1:1: .*; .*127\.0\.0\.1:2: "):
            await client.fetch_topic_list()


@LOOK_UPS
@pytest.mark.parametrize("first", [RESTARTED, NOT_READY], ids=["knows-nothing", "not-ready"])
async def test_what_one_name_server_lacks_is_found_at_another_which_is_asked_from_then_on(look_up, first):
    empty, full = answering(first), answering(TELLING)
    async with asking(empty, full) as client:
        assert all([await look_up(client) for _ in range(3)])
    assert asked(empty, full) == [1, 3]


@LOOK_UPS
async def test_an_answer_that_has_it_costs_no_request_to_another(look_up):
    full, other = answering(TELLING), answering(TELLING)
    async with asking(full, other) as client:
        await look_up(client)
    assert asked(full, other) == [1, 0]


async def test_a_topic_that_none_has_is_asked_of_each_once_and_each_is_named():
    gone, first, second = "127.0.0.1:1", answering(RESTARTED), answering(RESTARTED)
    async with asking(gone, first, second) as client:
        with pytest.raises(TopicNotFoundError) as caught:
            await client.fetch_route("T")
    assert f"'T' has no route at {first.addr}, {second.addr} (not told by others: " in str(caught.value)
    assert gone in str(caught.value)
    assert asked(first, second) == [1, 1]


async def test_a_broker_that_one_name_server_lacks_is_looked_for_at_the_others():
    other = response(0, 0, body=BROKERS.replace(b'"b"', b'"a"'))
    async with asking(answering(TELLING), ScriptedPeer(lambda _: other)) as client:
        found = await client.fetch_cluster_info(lambda info: "a" in info.broker_addr_table)
    assert list(found.broker_addr_table) == ["a"]


async def test_an_empty_cluster_is_the_answer_of_all():
    first, second = answering(RESTARTED), answering(RESTARTED)
    async with asking(first, second) as client:
        assert await client.fetch_cluster_info() == ClusterInfo()
        assert await client.fetch_topic_list() == ()
    assert asked(first, second) == [2, 2]


async def test_a_refusal_of_all_is_raised():
    first, second = answering(NOT_READY), answering(NOT_READY)
    async with asking(first, second) as client:
        with pytest.raises(BrokerError, match="not ready"):
            await client.fetch_route("T")
    assert asked(first, second) == [1, 1]


async def test_a_refused_change_is_the_error_and_the_other_name_servers_have_been_asked():
    refusing, gone = answering(dict.fromkeys(RequestCode, response(1, 0, remark="no"))), "127.0.0.1:1"
    taking = answering(dict.fromkeys(RequestCode, response(0, 0)))
    async with asking(gone, refusing, taking) as client:
        with pytest.raises(BrokerError, match="no"):
            await client.change_each(WipeWritePermOfBrokerRequestHeader(broker_name="b"))

    assert asked(refusing, taking) == [1, 1]
