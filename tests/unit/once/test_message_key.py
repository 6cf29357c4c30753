import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rmqtools.once import message_key
from rmqtools.testing import stored_message
from spark_connector.write.stamps import HASH, STAMP
from tests.unit.once.listening import message


def test_a_key_has_32_hex_digits():
    assert len(bytes.fromhex(message_key(message(1)))) == 16


def test_the_unique_key_is_the_same_in_any_queue_and_after_a_retry():
    first, again = message(1), message(9, unique="unique-1", RETRY_TOPIC="Orders", ORIGIN_MESSAGE_ID="x")

    assert message_key(first) == message_key(again)


def test_without_a_unique_key_the_offset_id_counts_and_survives_a_retry():
    first = stored_message("Orders", 1, offset_msg_id="A", properties={})
    again = stored_message("Orders", 2, offset_msg_id="B", properties={"ORIGIN_MESSAGE_ID": "A"})

    assert message_key(first) == message_key(again)
    assert message_key(first) != message_key(stored_message("Orders", 2, offset_msg_id="B", properties={}))


def test_a_key_belongs_to_one_topic():
    assert message_key(message(1)) != message_key(message(1).with_topic("Other"))


TEXTS = st.text("ab/:\0\u00e9", max_size=4)


@example([("a", "bc"), ("ab", "c")])  # equal if they were only joined
@example([("a\0", "b"), ("a", "\0b")])
@given(st.lists(st.tuples(TEXTS.filter(bool), TEXTS), min_size=2, max_size=2, unique=True))
def test_different_stamps_and_hashes_give_different_keys(pairs):
    keys = {message_key(message(1, **{STAMP: stamp, HASH: row})) for stamp, row in pairs}

    assert len(keys) == 2


def test_a_key_function_that_returns_no_text_is_an_error():
    with pytest.raises(TypeError, match=r"key\(\) returned 7 for message unique-1"):
        message_key(message(1), lambda _: 7)  # type: ignore[arg-type, return-value]  # the mistake
