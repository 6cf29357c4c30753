"""Transactions against a broker that answers and asks as a test says."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from rmqtools import LocalTransactionState, Message, ProducerConfig, SendStatus
from rmqtools.aio import TransactionProducer
from rmqtools.engine.connection import client
from rmqtools.engine.producer import check_back, transaction
from rmqtools.errors import ConfigError, MessageRejectedError, SendError, UnknownOutcomeError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.testing import Reaction
from tests.support.scripted_cluster import says as answers
from tests.support.scripted_cluster import silent, stored
from tests.support.scripted_transactions import TransactionBroker, until
from tests.support.transactions import COMMIT, ROLLBACK, UNKNOWN

MESSAGE = Message("T", b"body", tags="t")
END = RequestCode.END_TRANSACTION


def raise_now(*arguments: object) -> LocalTransactionState:
    raise RuntimeError("the database is away")


class Listener:
    """Coroutines with scripted results, which wait for ``go_on`` if given."""

    def __init__(self, *, decides=COMMIT, checks=COMMIT, go_on=None) -> None:
        self.decides, self.checks, self.go_on = decides, checks, go_on
        self.executed, self.checked = list[Any](), list[Any]()

    async def execute_local_transaction(self, message, arg):
        self.executed.append(message)
        return await self._give(self.decides)

    async def check_local_transaction(self, message):
        self.checked.append(message)
        return await self._give(self.checks)

    async def _give(self, state):
        if self.go_on is not None:
            await self.go_on.wait()
        return state() if callable(state) else state


@asynccontextmanager
async def producing(listener: Listener, broker: TransactionBroker | None = None, **settings):
    """A producer that its broker knows, the broker with the requests, and the listener."""
    broker = broker or TransactionBroker()
    async with broker.serving():
        config = ProducerConfig(name_server=broker.name_server, group="g", **settings)
        async with TransactionProducer(config, listener) as producer:
            await broker.arrived(RequestCode.HEART_BEAT)
            yield producer, broker, listener


async def send_one(listener: Listener, broker: TransactionBroker | None = None, **settings):
    """Send one message in a transaction; the result and the broker's ENDs."""
    async with producing(listener, broker, **settings) as (producer, broker, _):
        result = await producer.send_message_in_transaction(MESSAGE)
        await broker.arrived(END)
    return result, broker.requests(END)


@pytest.mark.parametrize(("state", "bits"), [(COMMIT, "8"), (ROLLBACK, "12"), (UNKNOWN, "0")])
async def test_the_decision_names_the_place_of_the_half_message(state, bits):
    result, (end,) = await send_one(Listener(decides=state))

    assert result.local_transaction_state is state
    assert result.end_transaction_error is None
    assert {name: end.ext_fields[name] for name in ("topic", "producerGroup", "bname", "msgId")} == {
        "topic": "T",
        "producerGroup": "g",
        "bname": "a",
        "msgId": result.msg_id,
    }
    assert end.ext_fields["commitOrRollback"] == bits
    assert (end.ext_fields["tranStateTableOffset"], end.ext_fields["commitLogOffset"]) == ("5", "0")
    assert end.ext_fields["fromTransactionCheck"] == "false"
    assert end.is_oneway == (state is UNKNOWN)


async def test_a_local_transaction_that_raises_is_unknown_and_the_broker_is_told_why(caplog):
    result, (end,) = await send_one(Listener(decides=raise_now))

    assert result.local_transaction_state is UNKNOWN
    assert "the database is away" in result.local_transaction_error
    assert "the database is away" in end.remark
    assert "transaction_listener_failed" in caplog.text


async def test_a_half_message_that_is_not_safe_is_rolled_back_without_a_local_transaction():
    listener = Listener()
    broker = TransactionBroker(sends=lambda command: stored(command, ResponseCode.FLUSH_DISK_TIMEOUT))
    result, (end,) = await send_one(listener, broker)

    assert (result.status, result.local_transaction_state) == (SendStatus.FLUSH_DISK_TIMEOUT, ROLLBACK)
    assert end.ext_fields["commitOrRollback"] == "12"
    assert listener.executed == []


async def test_a_half_message_without_an_answer_is_unknown_and_nothing_is_decided():
    async with producing(Listener(), TransactionBroker(sends=silent)) as (producer, broker, listener):
        with pytest.raises(UnknownOutcomeError):
            await producer.send_message_in_transaction(MESSAGE, timeout=0.2)
        assert producer._check_back._executing == {}

    assert (listener.executed, broker.requests(END)) == ([], [])


@pytest.mark.parametrize(
    ("ends", "reason"),
    [
        pytest.param(silent, "did not answer", id="silent"),
        pytest.param(answers(ResponseCode.ILLEGAL_OPERATION), "ILLEGAL_OPERATION", id="refused"),
    ],
)
async def test_a_decision_that_may_not_have_been_taken_is_told_and_not_sent_again(ends, reason):
    result, sent = await send_one(Listener(), TransactionBroker(ends=ends), send_timeout=0.3)

    assert reason in result.end_transaction_error
    assert result.local_transaction_state is COMMIT
    assert len(sent) == 1


async def test_a_half_message_whose_route_does_not_come_ends_in_its_time():
    broker = TransactionBroker()
    broker.fault(code=RequestCode.GET_ROUTEINFO_BY_TOPIC, topic="T", times=None, answer=Reaction.SILENCE)
    async with producing(Listener(), broker) as (producer, _, listener), asyncio.timeout(2):
        with pytest.raises(SendError, match="no route of topic 'T' came before"):
            await producer.send_message_in_transaction(MESSAGE, timeout=0.1)

    assert listener.executed == []


def stored_nowhere(request: RemotingCommand) -> RemotingCommand:
    """What a broker says that has stored a half message, with an offset id that names no place."""
    answer = stored(request)
    return replace(answer, ext_fields={**answer.ext_fields, "msgId": "7F00"})


async def test_a_half_message_without_a_place_is_not_ended_and_its_local_transaction_is_told():
    async with producing(Listener(), TransactionBroker(sends=stored_nowhere)) as (producer, broker, _):
        result = await producer.send_message_in_transaction(MESSAGE)

    assert "offset message id '7F00'" in result.end_transaction_error
    assert result.local_transaction_state is COMMIT
    assert broker.requests(END) == []


async def test_a_half_message_without_a_place_is_ended_where_its_broker_has_asked_for_it():
    listener = Listener(go_on=asyncio.Event())
    async with producing(listener, TransactionBroker(sends=stored_nowhere)) as (producer, broker, _):
        sending = asyncio.create_task(producer.send_message_in_transaction(MESSAGE))
        await until(lambda: listener.executed)
        msg_id = listener.executed[0].transaction_id
        await broker.check(msg_id, place=7)
        await until(lambda: producer._check_back._executing[msg_id])
        listener.go_on.set()
        result = await sending

    assert result.end_transaction_error is None
    assert [end.ext_fields["commitLogOffset"] for end in broker.requests(END)] == ["700"]


@pytest.mark.parametrize(
    ("state", "bits"), [(COMMIT, "8"), (ROLLBACK, "12"), (UNKNOWN, "0"), (raise_now, "0")]
)
async def test_a_check_is_answered_with_the_place_it_named(state, bits):
    async with producing(Listener(checks=state)) as (_, broker, listener):
        await broker.check("id-1", place=7)
        await broker.arrived(END)

    (end,) = broker.requests(END)
    assert (end.ext_fields["commitOrRollback"], end.ext_fields["msgId"]) == (bits, "id-1")
    assert (end.ext_fields["tranStateTableOffset"], end.ext_fields["commitLogOffset"]) == ("7", "700")
    assert end.ext_fields["fromTransactionCheck"] == "true"
    assert [(message.msg_id, message.body) for message in listener.checked] == [("id-1", b"half")]


async def test_a_half_message_whose_body_cannot_be_read_is_checked_like_any_other():
    async with producing(Listener(checks=COMMIT)) as (_, broker, listener):
        await broker.check("id-1", place=7, is_corrupt=True)
        await broker.arrived(END)

    (end,) = broker.requests(END)
    assert (end.ext_fields["commitOrRollback"], end.ext_fields["msgId"]) == ("8", "id-1")
    assert [message.body_error.raw for message in listener.checked] == [b"half"]


async def test_a_check_during_the_local_transaction_waits_and_the_decision_names_its_place():
    async with producing(Listener(go_on=asyncio.Event())) as (producer, broker, listener):
        sending = asyncio.create_task(producer.send_message_in_transaction(MESSAGE))
        await broker.arrived(RequestCode.SEND_MESSAGE_V2)
        await until(lambda: listener.executed)
        for place in (7, 8):
            await broker.check(listener.executed[0].transaction_id, place=place)
        await held_at(producer, 8)
        listener.go_on.set()
        await sending

    (end,) = broker.requests(END)
    assert (end.ext_fields["tranStateTableOffset"], end.ext_fields["fromTransactionCheck"]) == ("8", "true")
    assert listener.checked == []


async def held_at(producer, place: int) -> None:
    """Wait until the newest place of the only open message is known."""
    check_back = producer._check_back

    def newest() -> int:
        places = [
            *check_back._checking.values(),
            *(p for d in check_back._executing.values() for p in d.values()),
        ]
        return max((p.tran_state_table_offset for p in places), default=0)

    await until(lambda: newest() == place)


async def test_while_a_check_is_under_way_the_same_message_is_not_checked_again():
    async with producing(Listener(go_on=asyncio.Event())) as (producer, broker, listener):
        for place in (7, 8):
            await broker.check("id-1", place=place)
        await held_at(producer, 8)
        listener.go_on.set()
        await broker.arrived(END)

    (end,) = broker.requests(END)
    assert end.ext_fields["tranStateTableOffset"] == "8"
    assert len(listener.checked) == 1


async def test_a_copy_of_what_was_decided_is_rolled_back_without_asking():
    async with producing(Listener()) as (producer, broker, listener):
        result = await producer.send_message_in_transaction(MESSAGE)
        await broker.check(result.msg_id, place=7)
        await broker.arrived(END, 2)

    first, second = broker.requests(END)
    assert (first.ext_fields["commitOrRollback"], second.ext_fields["commitOrRollback"]) == ("8", "12")
    assert second.ext_fields["tranStateTableOffset"] == "7"
    assert listener.checked == []


async def test_what_may_not_have_been_taken_is_checked_as_usual():
    taken = list[Any]()

    def ends(command):
        taken.append(command)
        return answers(ResponseCode.SYSTEM_BUSY if len(taken) == 1 else ResponseCode.SUCCESS)(command)

    async with producing(Listener(), TransactionBroker(ends=ends)) as (producer, broker, listener):
        result = await producer.send_message_in_transaction(MESSAGE)
        await broker.check(result.msg_id, place=7)
        await broker.arrived(END, 2)

    ends_seen = broker.requests(END)
    assert [end.ext_fields["commitOrRollback"] for end in ends_seen] == ["8", "8"]
    assert len(listener.checked) == 1


async def test_checks_at_once_and_checks_held_are_bounded(caplog):
    listener = Listener(go_on=asyncio.Event())
    bounds: Any = {"check_thread_pool_max_size": 2, "check_request_hold_max": 4}
    async with producing(listener, **bounds) as (producer, broker, _):
        for number in range(5):
            await broker.check(f"id-{number}", place=number)
        await held_at(producer, 3)
        await until(lambda: "transaction_check_refused" in caplog.text)
        assert len(listener.checked) == 2
        listener.go_on.set()
        await broker.arrived(END, 4)

    assert len(listener.checked) == 4


async def test_a_check_for_another_group_is_left_to_its_members():
    async with producing(Listener()) as (_, broker, listener):
        await broker.check("other", place=1, group="other")
        await broker.check("mine", place=2)
        await broker.arrived(END)

    assert [message.msg_id for message in listener.checked] == ["mine"]


async def test_closing_lets_a_check_end():
    async with producing(Listener(go_on=asyncio.Event())) as (producer, broker, listener):
        await broker.check("id-1", place=1)
        await held_at(producer, 1)
        asyncio.get_running_loop().call_later(0.05, listener.go_on.set)

    assert len(broker.requests(END)) == 1


async def test_closing_drops_a_check_that_does_not_end(monkeypatch, caplog):
    monkeypatch.setattr(check_back, "_CLOSE_GRACE", 0.05)
    async with producing(Listener(go_on=asyncio.Event())) as (producer, broker, _):
        await broker.check("id-1", place=1)
        await held_at(producer, 1)

    assert broker.requests(END) == []
    assert "transaction_checks_dropped" in caplog.text


async def test_brokers_are_told_of_the_group_before_anything_is_sent_and_again_on_a_new_connection(
    monkeypatch,
):
    monkeypatch.setattr(transaction, "_ANNOUNCE_INTERVAL", 0.05)
    monkeypatch.setattr(client, "_FIRST_HEARTBEAT_DELAY", 0.05)
    async with producing(Listener()) as (producer, broker, _):
        first, _ = await broker.arrived(RequestCode.HEART_BEAT, 2)  # at once, and the regular one
        assert json.loads(first.body)["producerDataSet"] == [{"groupName": "g"}]
        for connection in list(producer._client.remoting.connections.values()):
            connection.abort()
        await broker.arrived(RequestCode.HEART_BEAT, 3)

    assert broker.requests(RequestCode.SEND_MESSAGE_V2) == []


def test_the_default_group_is_refused():
    with pytest.raises(ConfigError, match="give the group a name of its own"):
        TransactionProducer(ProducerConfig(name_server="127.0.0.1:1"), Listener())


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ({"delay_level": 1}, "delay"),
        ({"delay": 1.0}, "delay"),
        ({"deliver_at_ms": 1}, "delay"),
        ({"priority": 1}, "priority"),
    ],
)
async def test_a_delay_and_a_priority_are_refused(setting, text):
    async with producing(Listener()) as (producer, broker, _):
        with pytest.raises(MessageRejectedError, match=f"cannot have a {text}"):
            await producer.send_message_in_transaction(Message("T", b"x", **setting))

    assert broker.requests(RequestCode.SEND_MESSAGE_V2) == []
