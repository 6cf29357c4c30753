import time

import pytest

from rmqtools.errors import ProtocolError
from rmqtools.model.message import MessageExt
from rmqtools.protocol.headers.pop_extra_info import parse_extra_info
from rmqtools.protocol.headers.pull import PopMessageResponseHeader
from rmqtools.protocol.messages.popped import (
    broken_extra_infos,
    extra_info_of,
    receipt_parts,
    with_extra_info,
)
from rmqtools.protocol.messages.stored import decode_messages, encode_message
from rmqtools.testing import stored_message

POP_TIME, INVISIBLE_TIME = 1700000000000, 60000
TAIL = f"{POP_TIME} {INVISIBLE_TIME}"


def stored(topic: str, queue_id: int, queue_offset: int, times: int = 0, **properties: str) -> MessageExt:
    return stored_message(
        topic, queue_offset, queue_id=queue_id, properties=properties, reconsume_times=times
    )


def popped(messages, starts=None, offsets=None, counts=None, *, order=False):
    header = PopMessageResponseHeader(
        pop_time=POP_TIME,
        invisible_time=INVISIBLE_TIME,
        revive_qid=999 if order else 3,
        rest_num=0,
        start_offset_info=starts,
        msg_offset_info=offsets,
        order_count_info=counts,
    )
    return with_extra_info(messages, header, topic="T", broker_name="broker-a", order=order)


def received_from_wire(messages):
    """The same messages, each field decoded when it is used."""
    return decode_messages(b"".join(map(encode_message, messages)))


def texts(messages):
    return [(message.reconsume_times, message.properties["POP_CK"]) for message in messages]


OWN = "1 2 3 4 1 broker-b 0 2"

# What MQClientAPIImpl.processPopResponse of the Java client 5.5.0 makes of the same answers.
ANSWERS = [
    pytest.param(
        [stored("T", 0, 5), stored("T", 0, 6, 1), stored("T", 1, 9)],
        (None, None, None),
        [
            (0, f"5 {TAIL} 3 0 broker-a 0 5"),
            (1, f"5 {TAIL} 3 0 broker-a 0 6"),
            (0, f"9 {TAIL} 3 0 broker-a 1 9"),
        ],
        id="no-texts",
    ),
    pytest.param(
        [stored("%RETRY%g_T", 0, 5), stored("%RETRY%g+T", 0, 6, 2)],
        (None, None, None),
        [(0, f"5 {TAIL} 3 1 broker-a 0 5"), (2, f"6 {TAIL} 3 2 broker-a 0 6")],
        id="no-texts-retry",
    ),
    pytest.param(
        [stored("T", 0, 5, POP_CK=OWN)],
        (None, None, None),
        [(0, f"5 {TAIL} 3 0 broker-a 0 5")],
        id="no-texts-own-ck",
    ),
    pytest.param(
        [stored("T", 0, 5), stored("T", 1, 9), stored("T", 0, 6)],
        ("0 0 4;0 1 9", "0 0 5,6;0 1 9", None),
        [
            (0, f"4 {TAIL} 3 0 broker-a 0 5"),
            (0, f"9 {TAIL} 3 0 broker-a 1 9"),
            (0, f"4 {TAIL} 3 0 broker-a 0 6"),
        ],
        id="texts",
    ),
    pytest.param(
        [stored("T", 0, 5), stored("T", 0, 6)],
        ("0 0 4", "0 0 50,60", None),
        [(0, f"4 {TAIL} 3 0 broker-a 0 50"), (0, f"4 {TAIL} 3 0 broker-a 0 60")],
        id="strange-offsets",
    ),
    pytest.param(
        [stored("%RETRY%g_T", 0, 5, 1), stored("%RETRY%g+T", 0, 8, 1), stored("T", 0, 2)],
        ("1 0 4;2 0 7;0 0 1", "1 0 5;2 0 8;0 0 2", None),
        [
            (1, f"4 {TAIL} 3 1 broker-a 0 5"),
            (1, f"7 {TAIL} 3 2 broker-a 0 8"),
            (0, f"1 {TAIL} 3 0 broker-a 0 2"),
        ],
        id="retry",
    ),
    pytest.param(
        [stored("T", 0, 2, 3, POP_CK=OWN), stored("T", 0, 5)],
        ("0 0 4;1 0 1", "0 0 5;1 0 2", None),
        [(3, OWN), (0, f"4 {TAIL} 3 0 broker-a 0 5")],
        id="own-ck",
    ),
    pytest.param(
        [stored("T", 0, 5, 1)],
        ("0 0 4", "0 0 5", "0 0 2"),
        [(1, f"4 {TAIL} 3 0 broker-a 0 5")],
        id="counts-not-order",
    ),
]

# The same, popped in order.
ORDERED_ANSWERS = [
    pytest.param([0, 0], "0 0 2", [2, 2], id="queue"),
    pytest.param([0, 0], "0 0 2;0 qo0%6 4", [2, 4], id="message"),
    pytest.param([7, 7], "0 0 2;0 qo0%6 0", [2, 7], id="zero"),
]


@pytest.mark.parametrize(("messages", "info", "expected"), ANSWERS)
def test_every_message_gets_the_text_java_gives_it(messages, info, expected):
    found = popped(messages, *info)
    received = popped(received_from_wire(messages), *info)

    assert texts(found) == texts(received) == expected
    for one, text in zip(received, texts(received), strict=True):
        head, offset = receipt_parts(one) or ("", -1)
        assert f"{head} {offset}" == text[1]
        assert (extra_info_of(one), one.topic) == (parse_extra_info(text[1]), "T")


@pytest.mark.parametrize("on_use", [False, True], ids=["decoded", "decoded on use"])
@pytest.mark.parametrize(("before", "counts", "after"), ORDERED_ANSWERS)
def test_in_order_messages_count_their_tries(before, counts, after, on_use):
    messages = [stored("T", 0, 5, before[0]), stored("T", 0, 6, before[1])]
    messages = received_from_wire(messages) if on_use else messages
    answered = popped(messages, "0 0 4", "0 0 5,6", counts, order=True)

    assert [message.reconsume_times for message in answered] == after
    assert [message.with_topic("U").reconsume_times for message in answered] == after
    assert answered[1].properties["POP_CK"] == f"4 {TAIL} 999 0 broker-a 0 6"


def test_messages_of_the_retry_topic_come_as_those_of_the_topic():
    (message,) = popped([stored("%RETRY%g_T", 0, 5)])

    assert (message.topic, message.broker_name) == ("T", "broker-a")


def test_the_first_pop_time_stays():
    answered = popped([stored("T", 0, 5), stored("T", 0, 6, 0, **{"1ST_POP_TIME": "1"})])

    assert [message.properties["1ST_POP_TIME"] for message in answered] == [str(POP_TIME), "1"]


@pytest.mark.parametrize(
    ("starts", "offsets"), [("0 1 4", "0 0 5,6"), ("0 0 4", "0 0 5"), ("0 0 4", None), ("x", "0 0 5,6")]
)
def test_an_answer_that_lacks_a_message_is_refused(starts, offsets):
    with pytest.raises(ProtocolError, match="pop"):
        popped([stored("T", 0, 5), stored("T", 0, 6)], starts, offsets)


def test_no_message_is_nothing():
    assert popped([]) == []


@pytest.mark.parametrize(
    ("starts", "offsets", "wanted"),
    [
        pytest.param("0 0 4", "0 0 4,5,6", ["4 0 5"], id="its-topic"),
        pytest.param("1 0 4", "1 0 5", ["4 1 5"], id="the-retry-topic"),
        pytest.param("0 0 4;1 0 2", "0 0 4,6;1 0 5", ["2 1 5"], id="of-two-topics-the-one-that-lacks-it"),
        pytest.param("0 0 4;2 0 2", "0 0 5;2 0 5", [], id="two-topics-lack-it"),
        pytest.param("0 0 4", "0 0 4,6", [], id="not-in-the-header"),
        pytest.param(None, None, [], id="no-texts"),
    ],
)
def test_a_message_that_cannot_be_decoded_is_acknowledged_by_the_headers_offsets(starts, offsets, wanted):
    header = PopMessageResponseHeader(
        pop_time=POP_TIME,
        invisible_time=INVISIBLE_TIME,
        revive_qid=3,
        rest_num=0,
        start_offset_info=starts,
        msg_offset_info=offsets,
    )

    found = broken_extra_infos([(0, 5)], [stored("T", 0, 4)], header, broker_name="broker-a")

    texts_of = [f"{info.start_offset} {info.topic_type} {info.queue_offset}" for info in found]
    assert texts_of == wanted


@pytest.mark.process  # it works for seconds
def test_the_places_of_many_messages_are_found_without_looking_through_them_again():
    count = 20_000
    fields = {"start_offset_info": "0 0 0", "msg_offset_info": "0 0 " + ",".join(map(str, range(count)))}
    header = PopMessageResponseHeader(pop_time=1, invisible_time=2, revive_qid=3, rest_num=0, **fields)
    messages = [stored_message("T", number) for number in range(count)]

    began = time.process_time()
    found = with_extra_info(messages, header, topic="T", broker_name="b", order=False)

    assert time.process_time() - began < 3
    assert found[-1].properties["POP_CK"].split(" ")[-1] == "19999"


def test_what_a_message_has_besides_its_pop_data_stays_and_goes_with_it_to_another_topic():
    sent = stored_message("%RETRY%g_T", 5, queue_id=3, tags="A", reconsume_times=1, flag=7, sys_flag=2)
    (decoded,) = decode_messages(encode_message(sent))

    (message,) = popped([decoded], "1 3 4", "1 3 5")

    pop_data = {"POP_CK": f"4 {TAIL} 3 1 broker-a 3 5", "1ST_POP_TIME": str(POP_TIME)}
    for one in (message, message.with_topic("T")):
        assert (one.topic, one.broker_name, one.queue_id, one.queue_offset) == ("T", "broker-a", 3, 5)
        assert (one.flag, one.sys_flag, one.reconsume_times, one.body) == (7, 2, 1, sent.body)
        assert (one.store_host, one.commit_log_offset) == (sent.store_host, sent.commit_log_offset)
        assert one.properties == {"TAGS": "A", **pop_data}
    assert message.with_topic("other").properties == message.properties
    assert message.with_values(reconsume_times=2).with_topic("other").reconsume_times == 2
