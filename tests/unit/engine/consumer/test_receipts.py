from dataclasses import replace

import pytest

from rmqtools.engine.consumer.receipts import Receipts
from rmqtools.engine.consumer.settle_requests import PoppedMessage
from rmqtools.errors import ReceiptError
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_POP_CK
from rmqtools.protocol.headers.pop_extra_info import PopExtraInfo, format_extra_info
from rmqtools.testing.fake.messages import stored_message
from tests.unit.engine.consumer.test_consume_pop import INFO


def info(clock, *, age: float = 0.0, offset: int = 4) -> PopExtraInfo:
    popped_ms = clock.now_ms() - round(age * 1000)
    return replace(INFO, pop_time=popped_ms, invisible_time=10_000, queue_offset=offset)


def message(known: PopExtraInfo) -> MessageExt:
    return stored_message("T", 4, properties={PROPERTY_POP_CK: format_extra_info(known)})


def test_a_receipt_ends_with_its_invisible_time(clock):
    receipts, received = Receipts(clock), message(info(clock))

    clock.advance(9.999)
    before = receipts.is_valid(received)
    clock.advance(0.001)

    assert (before, receipts.is_valid(received)) == (True, False)


def test_the_clock_of_the_broker_counts(clock):
    receipts = Receipts(clock)
    late = info(clock, age=3600)  # its clock is an hour behind

    unknown = receipts.is_valid(message(late))
    receipts.received(late)
    known = receipts.is_valid(message(late))
    clock.advance(10.0)

    assert (unknown, known, receipts.is_valid(message(late))) == (False, True, False)


def test_an_answer_that_came_late_does_not_put_the_end_off(clock):
    receipts, received = Receipts(clock), info(clock)
    receipts.received(received)

    receipts.received(info(clock, age=5))
    clock.advance(10.0)

    assert not receipts.is_valid(message(received))


def test_setting_the_clock_of_this_machine_ends_no_receipt(clock):
    receipts, before = Receipts(clock), info(clock)
    receipts.received(before)

    clock.set_wall_clock(3600)
    after = info(clock, age=3600)
    receipts.received(after)

    assert (receipts.is_valid(message(before)), receipts.is_valid(message(after))) == (True, True)
    clock.advance(10.0)
    assert not receipts.is_valid(message(after))


def test_a_broker_whose_clock_was_set_back_is_believed_from_its_next_answer_on(clock):
    receipts = Receipts(clock)
    receipts.received(info(clock))

    later = info(clock, age=60)
    receipts.received(later)
    before = receipts.is_valid(message(later))
    clock.advance(10.0)

    assert (before, receipts.is_valid(message(later))) == (True, False)


def test_replaced_receipts_are_forgotten_when_they_have_ended(clock):
    receipts = Receipts(clock)
    for offset in range(1500):
        receipts.replace(PoppedMessage.of(message(info(clock, offset=offset))))
    clock.advance(10.0)
    for offset in range(1500, 3000):
        receipts.replace(PoppedMessage.of(message(info(clock, offset=offset))))

    assert len(receipts._replaced) <= 2000
    with pytest.raises(ReceiptError, match="was replaced"):
        receipts.check(message(info(clock, offset=2999)))


def test_an_extra_info_that_cannot_be_read_is_no_receipt(clock):
    broken = stored_message("T", properties={PROPERTY_POP_CK: "1 2 three"})

    with pytest.raises(ReceiptError, match="has no receipt"):
        Receipts(clock).check(broken)
