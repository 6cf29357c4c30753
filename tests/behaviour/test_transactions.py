"""Half messages and their decisions: alike on the fake cluster and on a real one."""

import pytest

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.send import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from rmqtools.protocol.messages.message_id import parse_offset_msg_id
from rmqtools.protocol.messages.stored import decode_message
from tests.behaviour.site import max_offset, producer_heartbeat, pulled, send, until

PREPARED = MessageSysFlag.TRANSACTION_PREPARED_TYPE
COMMIT = MessageSysFlag.TRANSACTION_COMMIT_TYPE
ROLLBACK = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


def half(wire, topic, group, **properties):
    given = {"TRAN_MSG": "true", "PGROUP": group, "UNIQ_KEY": f"id-{group}", "TAGS": "t"} | properties
    return send(wire, topic, b"half", queue_id=1, group=group, sys_flag=int(PREPARED), properties=given)


def end(wire, stored, group, decision):
    header = EndTransactionRequestHeader(
        producer_group=group,
        tran_state_table_offset=stored.queue_offset,
        commit_log_offset=parse_offset_msg_id(stored.msg_id)[1],
        commit_or_rollback=int(decision),
        msg_id=f"id-{group}",
        transaction_id=f"id-{group}",
    )
    return wire.ask(header)


def test_a_half_message_is_not_seen_until_it_is_committed(wire, topic, group):
    stored = half(wire, topic, group)
    assert pulled(wire, topic, queue_id=1) == []

    assert end(wire, stored, group, COMMIT).code == ResponseCode.SUCCESS

    (message,) = until(lambda: pulled(wire, topic, queue_id=1))
    assert (message.body, message.tags, message.queue_id) == (b"half", "t", 1)
    assert message.sys_flag == COMMIT
    assert message.prepared_transaction_offset == parse_offset_msg_id(stored.msg_id)[1]
    assert message.properties["__transactionId__"] == f"id-{group}"
    assert message.properties["PGROUP"] == group
    assert not message.properties.keys() & {"REAL_TOPIC", "REAL_QID"}


def test_the_answer_to_a_half_message_has_its_transaction_id(wire, topic, group):
    assert half(wire, topic, group).transaction_id == f"id-{group}"


def test_a_half_message_that_is_rolled_back_is_never_seen(wire, topic, group):
    rolled_back = half(wire, topic, group)
    end(wire, rolled_back, group, ROLLBACK)
    end(wire, half(wire, topic, group), group, COMMIT)

    until(lambda: pulled(wire, topic, queue_id=1))
    assert max_offset(wire, topic, 1) == 1


def test_a_second_commit_stores_the_message_twice(wire, topic, group):
    stored = half(wire, topic, group)
    end(wire, stored, group, COMMIT)
    end(wire, stored, group, COMMIT)

    until(lambda: max_offset(wire, topic, 1) == 2)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(lambda stored, group: (stored, f"other-{group}"), id="group"),
    ],
)
def test_a_decision_of_another_group_is_refused(wire, topic, group, wrong):
    stored, other = wrong(half(wire, topic, group), group)

    assert end(wire, stored, other, COMMIT).code == ResponseCode.SYSTEM_ERROR


@pytest.mark.parametrize(
    "site", ["fake", pytest.param("real", marks=[pytest.mark.broker, pytest.mark.slow])], indirect=True
)
def test_a_broker_asks_the_producer_for_a_half_message_it_moved_to_the_end(site, wire, topic, group):
    producer_heartbeat(wire, "one", group)
    stored = half(wire, topic, group)
    if site.fake is not None:
        assert site.fake.check_transactions(group) == 1
    question = wire.notice(RequestCode.CHECK_TRANSACTION_STATE, within=90)
    assert question is not None
    header = decode_header(CheckTransactionStateRequestHeader, question.ext_fields)
    message = decode_message(question.body)

    assert (header.transaction_id, header.msg_id) == (f"id-{group}", f"id-{group}")
    assert header.tran_state_table_offset > stored.queue_offset
    assert (message.topic, message.queue_id, message.body) == (topic, 1, b"half")
    assert message.properties["TRANSACTION_CHECK_TIMES"] == "1"
    assert message.commit_log_offset == header.commit_log_offset
