from typing import Any

import pytest

from rmqtools.config import ClientConfig
from rmqtools.engine.connection.remoting import Remoting
from rmqtools.errors import RemotingConnectError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.wire.command import RemotingCommand, response
from tests.support.scripted_peer import ScriptedPeer, run

ASK = RemotingCommand(RequestCode.GET_BROKER_RUNTIME_INFO)


def remoting(rules: Any) -> Remoting:
    return Remoting(ClientConfig(name_server="127.0.0.1:1", broker_address_map=rules))


def error_of(rules: Any, addr: str) -> str:
    errors = []

    async def scenario() -> None:
        client = remoting(rules)
        with pytest.raises(RemotingConnectError) as caught:
            await client.invoke(addr, ASK)
        errors.append(str(caught.value))
        await client.close()

    run(scenario)
    return errors[0]


@pytest.mark.parametrize("rule", ["*:10911", "127.9.9.*", "*"])
async def test_a_broker_is_reached_by_a_rule(rule):
    async with ScriptedPeer(lambda _: response(ResponseCode.SUCCESS, 0)).serving() as peer:
        client = remoting({rule: peer.addr})
        assert (await client.invoke("127.9.9.9:10911", ASK)).code == ResponseCode.SUCCESS
        await client.close()


async def test_a_broker_is_reached_by_a_function():
    async with ScriptedPeer(lambda _: response(ResponseCode.SUCCESS, 0)).serving() as peer:
        client = remoting(lambda addr: peer.addr)
        assert (await client.invoke("127.9.9.9:10911", ASK)).code == ResponseCode.SUCCESS
        await client.close()


def test_the_error_of_an_unreachable_broker_names_both_addresses_and_the_option():
    text = error_of({"127.9.9.*": "127.8.8.8:*"}, "127.9.9.9:10911")

    assert "the route gave 127.9.9.9:10911, broker_address_map made it 127.8.8.8:10911" in text


def test_the_error_of_an_unreachable_broker_without_a_rule_names_the_option():
    assert "set broker_address_map, e.g. {'127.9.9.9:10911': 'host:port'}" in error_of({}, "127.9.9.9:10911")


def test_name_servers_keep_their_address_under_rules_for_brokers():
    assert error_of({"*": "127.8.8.8:10911"}, "127.0.0.1:1").startswith("cannot connect to 127.0.0.1:1: ")
    assert "127.8.8.8" not in error_of({"*": "127.8.8.8:10911"}, "127.0.0.1:1")
