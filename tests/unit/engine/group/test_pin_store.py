from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rmqtools import aio
from rmqtools.allocate import NO_PINS, Pins
from rmqtools.config import ClientConfig
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.group.pin_store import KV_NAMESPACE, PinStore
from rmqtools.errors import ConfigError, RemotingConnectError, RocketMQError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.policy.allocate.pins import LARGEST_JUMP
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing.fake import name_server
from rmqtools.testing.fake.server import Answer, Peer, Server

OLD, NEW = Pins(3, ["10.0.0.3"]), Pins(7, ["10.0.0.7"])
POISON = Pins(2**63 - 1, ["10.6.6.6"])
NOWHERE = "127.0.0.1:1"


class NameServer(Server):
    """Keeps settings; ``frozen`` accepts new ones without storing them. ``text`` is the pins of group g."""

    def __init__(self, text: str | None = None, *, frozen: bool = False) -> None:
        super().__init__(self._answer)
        self._kept = name_server.NameServer({})
        self._kept.settings[KV_NAMESPACE] = {} if text is None else {"g": text}
        self._frozen = frozen
        self.keys: set[tuple[str | None, str | None]] = set()

    @property
    def text(self) -> str | None:
        return self._kept.settings[KV_NAMESPACE].get("g")

    @property
    def pins(self) -> Pins:
        return Pins.parse(self.text or "")

    def _answer(self, request: RemotingCommand, peer: Peer) -> Answer:
        self.keys.add((request.ext_fields["namespace"], request.ext_fields["key"]))
        if self._frozen and request.code == RequestCode.PUT_KV_CONFIG:
            return response(ResponseCode.SUCCESS, 0)
        return self._kept.handle(request, peer)


@asynccontextmanager
async def storing(*servers: NameServer | str, **settings: Any) -> AsyncIterator[PinStore]:
    """A store on these name servers; a text is an address without a listener."""
    async with AsyncExitStack() as stack:
        for server in servers:
            if isinstance(server, NameServer):
                await stack.enter_async_context(server.serving())
        addrs = [server if isinstance(server, str) else server.addr for server in servers]
        client = ClientCore(ClientConfig(name_server=";".join(addrs), request_timeout=3.0, **settings))
        stack.push_async_callback(client.close)
        yield PinStore(client)


async def fetched(*servers: NameServer | str, last: Pins | None = None) -> Pins | None:
    async with storing(*servers) as store:
        return await store.fetch("g", last)


@pytest.mark.parametrize(
    ("servers", "last", "found"),
    [
        pytest.param([OLD.format(), NEW.format(), None], None, NEW, id="the-highest-version"),
        pytest.param([None], None, NO_PINS, id="no-pins"),
        pytest.param([None], NEW, NEW, id="lost-pins-are-kept"),
        pytest.param([OLD.format()], NEW, NEW, id="old-pins-do-not-undo-newer-ones"),
        pytest.param([NOWHERE], OLD, OLD, id="nobody-answers-and-pins-are-known"),
        pytest.param([NOWHERE], None, None, id="nobody-answers-and-none-are-known"),
        pytest.param([POISON.format(), NEW.format()], OLD, NEW, id="a-version-that-jumps"),
        pytest.param([POISON.format()], OLD, OLD, id="only-a-version-that-jumps"),
        pytest.param([POISON.format()], None, None, id="only-a-version-that-jumps-and-none-are-known"),
    ],
)
async def test_the_newest_valid_pins_of_all_name_servers_count(servers, last, found):
    stores = [text if text == NOWHERE else NameServer(text) for text in servers]

    assert await fetched(*stores, last=last) == found


@pytest.mark.parametrize("text", ["", "{", '{"version":9}', '{"version":9,"ips":"10.0.0.1"}', "[" * 5000])
async def test_garbled_pins_count_as_no_answer_and_are_logged(text, caplog):
    assert await fetched(NameServer(text), last=OLD) == OLD
    assert await fetched(NameServer(text), last=None) is None
    assert await fetched(NameServer(text), NameServer(NEW.format()), last=OLD) == NEW
    assert "pins_not_read group='g' addr='127.0.0.1" in caplog.text


async def test_pins_that_no_name_server_can_show_are_an_error():
    async with NameServer("{").serving() as server, aio.Admin(ClientConfig(name_server=server.addr)) as admin:
        with pytest.raises(RocketMQError, match="garbled"):
            await admin.fetch_pins("g")


async def test_of_two_pins_of_one_version_all_take_the_greater_text_and_it_is_logged_once(caplog):
    first, second = Pins(3, ["10.0.0.1"]), Pins(3, ["10.0.0.2"])
    async with storing(NameServer(second.format()), NameServer(first.format())) as store:
        found = await store.fetch("g", None)
        assert found == second
        assert await store.fetch("g", found) == second

    assert await fetched(NameServer(first.format()), last=second) == second
    assert [record.message.split()[0] for record in caplog.records if record.levelname == "ERROR"] == [
        "pins_conflict"
    ] * 2


async def test_putting_writes_the_version_after_the_highest_everywhere_also_over_a_garbled_one():
    servers = NameServer(OLD.format()), NameServer(NEW.format()), NameServer(), NameServer("{")
    async with storing(*servers) as store:
        assert await store.put("g", Pins(0, ["10.0.0.9"])) == Pins(8, ["10.0.0.9"])

    assert len({server.text for server in servers}) == 1
    assert servers[2].pins == Pins(8, ["10.0.0.9"])


@pytest.mark.parametrize(("namespace", "key"), [(None, "g"), ("staging", "staging%g")], ids=["none", "one"])
async def test_the_key_is_the_group_in_its_namespace(namespace, key):
    server = NameServer()
    async with storing(server, namespace=namespace) as store:
        await store.fetch("g", None)
        await store.put("g", NEW)

    assert server.keys == {(KV_NAMESPACE, key)}


async def test_clearing_leaves_a_tombstone_of_a_higher_version():
    server = NameServer(NEW.format())
    async with storing(server) as store:
        await store.clear("g", set_by="ops")

    assert server.pins == Pins.cleared(8, set_by="ops")


async def test_a_name_server_that_is_down_fails_the_put_by_name_and_the_others_have_it():
    server = NameServer(OLD.format())
    async with storing(server, NOWHERE) as store:
        with pytest.raises(
            RocketMQError, match=r"version 4, are not on 1 of 2 .*127\.0\.0\.1:1: cannot conn"
        ) as put:
            await store.put("g", NEW)
        assert "The others have it" in str(put.value)

    assert server.pins.version == 4


async def test_a_name_server_that_keeps_something_else_fails_the_put():
    async with storing(NameServer(OLD.format(), frozen=True)) as store:
        with pytest.raises(RocketMQError, match="accepted it, but shows pins of version 3"):
            await store.put("g", NEW)


async def test_what_is_written_says_when_and_from_where():
    server, before = NameServer(), datetime.now(UTC) - timedelta(seconds=1)
    async with storing(server, client_ip="10.5.5.5") as store:
        await store.put("g", NEW)

    written = server.pins
    assert written.set_from == "10.5.5.5"
    assert written.set_at is not None
    assert before < written.set_at < datetime.now(UTC) + timedelta(seconds=1)


async def test_a_version_that_jumps_is_named(caplog):
    await fetched(NameServer(POISON.format()), last=OLD)
    assert "pins_not_read" in caplog.text
    assert "version 9223372036854775807 is above 4294967296" in caplog.text


async def test_setting_and_clearing_go_on_over_a_version_that_jumps():
    servers = NameServer(POISON.format()), NameServer(OLD.format())
    async with storing(*servers) as store:
        assert (await store.put("g", NEW)).version == 4
        assert (await store.clear("g")).version == 5

    assert servers[0].text == servers[1].text


async def test_no_version_above_the_highest_is_written():
    async with storing(NameServer(Pins(LARGEST_JUMP, ["10.6.6.6"]).format())) as store:
        with pytest.raises(RocketMQError, match="group check --repair' lets versions begin again"):
            await store.put("g", NEW)
        assert (await store.repair("g") or NO_PINS).version == 1
        assert (await store.put("g", NEW)).version == 2
        found = await store.fetch("g", Pins(LARGEST_JUMP))
        assert (found or NO_PINS).version == 2  # members that saw the highest follow


async def test_a_repair_writes_the_newest_valid_pins_everywhere():
    servers = NameServer(POISON.format()), NameServer(OLD.format()), NameServer("{"), NameServer()
    async with storing(*servers) as store:
        repaired = await store.repair("g") or NO_PINS
        assert (repaired.version, repaired.ips) == (4, OLD.ips)
        assert await store.repair("g") is None

    assert len({server.text for server in servers}) == 1


async def test_a_repair_writes_nothing_while_a_name_server_is_away():
    server = NameServer("{")
    async with storing(server, NOWHERE) as store:
        with pytest.raises(RocketMQError, match=f"cannot say what it has: {NOWHERE}.*repeat when all"):
            await store.repair("g")

    assert server.text == "{"


async def test_a_copy_from_before_a_repair_does_not_come_back():
    async with storing(NameServer(OLD.format()), NameServer()) as store:
        repaired = await store.repair("g")
        assert await store.fetch("g", Pins(LARGEST_JUMP, ["10.6.6.6"])) == repaired


async def test_copies_are_told_apart_by_name_server():
    server, garbled = NameServer(OLD.format()), NameServer("x")
    async with storing(server, garbled, NOWHERE) as store:
        copies = await store.fetch_copies("g")
        assert copies[server.addr] == OLD
        assert isinstance(copies[garbled.addr], ConfigError)
        assert isinstance(copies[NOWHERE], RemotingConnectError)
