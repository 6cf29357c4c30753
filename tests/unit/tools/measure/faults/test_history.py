import io

import pytest

from tools.measure.faults.body import decode_body, encode_body
from tools.measure.faults.history import (
    Answered,
    Attempt,
    Event,
    History,
    Holds,
    Marked,
    MessageId,
    Place,
    Read,
    Sent,
    from_line,
    to_line,
)

EVENTS: list[Event] = [
    Sent(1.5, MessageId("p0", 17)),
    Answered(1.6, MessageId("p0", 17), "stored", Place("a", 3, 9), (Attempt("b", "unknown", 1.0),)),
    Answered(1.6, MessageId("p0", 17), "unknown", None, ()),
    Read(1.7, "group", "r0", Place("a", 3, 9), MessageId("p0", 17)),
    Read(1.7, "group", "r0", Place("a", 3, 9), None),
    Holds(1.8, "r0", (("a", 3), ("b", 0))),
    Marked(2.0, "fault"),
]


@pytest.mark.parametrize("event", EVENTS)
def test_a_line_of_the_file_gives_the_event_back(event):
    assert from_line(to_line(event)) == event


def test_a_history_writes_one_line_an_event_and_counts_from_its_beginning(clock):
    file = io.StringIO()
    history = History(file, clock.monotonic)

    history.add(EVENTS[0])
    history.mark("fault")

    assert [from_line(line) for line in file.getvalue().splitlines()] == [EVENTS[0], Marked(0.0, "fault")]


def test_a_body_tells_whose_it_is():
    body = encode_body(MessageId("p3", 1234), 200)

    assert len(body) == 200
    assert decode_body(body) == MessageId("p3", 1234)


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b"x" + b[1:], lambda b: b[:50] + b"#" + b[51:]]
)
def test_a_damaged_body_is_nobodys(damage):
    assert decode_body(damage(encode_body(MessageId("p3", 1234), 200))) is None
