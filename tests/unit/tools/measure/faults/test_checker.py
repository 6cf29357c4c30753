"""The checker finds in a history what it is there to find, and nothing else."""

import pytest

from tools.measure.faults.checker import (
    attempts_on,
    check,
    first_ack,
    first_read,
    longest_gap,
    longest_unowned,
    marked,
)
from tools.measure.faults.history import Answered, Attempt, Holds, Marked, MessageId, Place, Read, Sent


def place(offset, *, broker="a", queue=0):
    return Place(broker, queue, offset)


def sent(number, *, producer="p", at=0.0):
    return Sent(at, MessageId(producer, number))


def answered(number, where, *tries, producer="p", outcome=None, at=0.5):
    """An answer; without ``tries`` one attempt that was stored."""
    outcome = outcome or ("stored" if where else "unknown")
    attempts = tuple(Attempt("a", try_, 0.1) for try_ in tries or ["stored"])
    return Answered(at, MessageId(producer, number), outcome, where, attempts)


def read(number, where, *, party="group", reader="r", producer="p", at=1.0):
    return Read(at, party, reader, where, None if number is None else MessageId(producer, number))


def stored(*numbers):
    """Messages that were acknowledged at the offsets of their numbers, and read in order."""
    return [
        *(sent(n) for n in numbers),
        *(answered(n, place(n)) for n in numbers),
        *(read(n, place(n)) for n in numbers),
    ]


def case(id, events, *, is_sound=False, **figures):
    """A history, and some figures of its verdict."""
    return pytest.param(events, figures | {"is_sound": is_sound}, id=id)


LOST = {"lost": (MessageId("p", 1),)}
TWICE = [read(0, place(1), party="sweep"), read(0, place(0), party="sweep")]
TURNED = [
    sent(0),
    sent(1),
    answered(0, place(1)),
    answered(1, place(0)),
    read(1, place(0)),
    read(0, place(1)),
]
APART = [  # two producers, and two queues
    *(sent(0), sent(1), sent(0, producer="q")),
    *(answered(0, place(5)), answered(1, place(1, queue=1)), answered(0, place(4), producer="q")),
    *(read(1, place(1, queue=1)), read(0, place(4), producer="q"), read(0, place(5))),
]


@pytest.mark.parametrize(
    ("events", "figures"),
    [
        case("sound", stored(0, 1, 2), is_sound=True, sent=3, acked=3, copies=0, redelivered=0),
        case(
            "read-again-at-its-place",
            [*stored(0, 1), read(1, place(1), reader="r2")],
            is_sound=True,
            redelivered=1,
            copies=0,
        ),
        case(
            "known-messages-read-again",
            [*stored(0, 1, 2), read(1, place(1)), read(2, place(2))],
            is_sound=True,
            reorder=0,
        ),
        case("other-producers-and-queues-are-not-compared", APART, is_sound=True, reorder=0),
        case("acknowledged-and-read-by-nobody", [*stored(0), sent(1), answered(1, place(1))], **LOST),
        case("no-reader-at-all", [sent(1), answered(1, place(1))], **LOST),
        case("never-read-by-one-of-two-parties", [*stored(0, 1), read(0, place(0), party="sweep")], **LOST),
        case("a-send-without-an-answer", [*stored(0), sent(1)], unanswered=1),
        case(
            "failed-for-certain-and-stored",
            [sent(0), answered(0, None, "refused", outcome="refused"), read(0, place(0))],
            unexplained=1,
        ),
        case("read-and-never-sent", [*stored(0), read(7, place(1))], phantom=1),
        case("a-damaged-body", [*stored(0), read(None, place(1))], corrupt=1),
        case("two-messages-at-a-place", [*stored(0, 1), *TWICE], corrupt=1),
        case(
            "another-where-it-was-acknowledged",
            [sent(0), sent(1), answered(0, place(0)), read(1, place(0))],
            corrupt=1,
        ),
        case("a-later-message-acknowledged-in-front-of-an-earlier-one", TURNED, reorder=1),
        case(
            "a-reader-back-at-a-new-message",
            [*stored(0, 1, 2)[:6], read(0, place(0)), read(2, place(2)), read(1, place(1))],
            reorder=1,
        ),
        case("offsets-missing-between-those-read", stored(3, 6), gap=2),
    ],
)
def test_what_must_never_happen_is_counted_and_a_history_without_it_is_sound(events, figures):
    verdict = check(events)

    assert {name: getattr(verdict, name) for name in figures} == figures


def test_unknown_attempts_of_sends_that_succeeded_count():
    verdict = check([sent(0), answered(0, place(0), "unknown", "stored"), read(0, place(0))])

    assert verdict.unknown_attempts == 1


@pytest.mark.parametrize("outcome", ["refused", "unknown"])
def test_a_message_that_was_not_acknowledged_cannot_be_lost(outcome):
    verdict = check([*stored(0), sent(1), answered(1, None, outcome, outcome=outcome)])

    assert verdict.lost == ()
    assert (verdict.refused, verdict.unknown) == (int(outcome == "refused"), int(outcome == "unknown"))


@pytest.mark.parametrize(
    ("tries", "copies", "unexplained"),
    [
        pytest.param(["stored"], 1, 0, id="one-attempt-one-place"),
        pytest.param(["unknown", "stored"], 2, 0, id="an-unknown-attempt-explains-a-second-place"),
        pytest.param(["unknown", "unknown", "stored"], 2, 0, id="and-need-not-have-stored-it"),
        pytest.param(["unknown", "stored"], 3, 1, id="but-not-a-third-place"),
        pytest.param(["refused", "stored"], 2, 1, id="a-refused-attempt-explains-none"),
        pytest.param(["not sent", "stored"], 2, 1, id="nor-does-one-never-sent"),
    ],
)
def test_copies_are_judged_by_the_attempts_whose_outcome_was_unknown(tries, copies, unexplained):
    events = [sent(0), answered(0, place(0), *tries)] + [read(0, place(n)) for n in range(copies)]

    verdict = check(events)

    assert (verdict.copies, verdict.unexplained) == (copies - 1, unexplained)
    assert verdict.is_sound == (not unexplained)


def test_the_readers_of_a_party_fill_each_others_gaps_and_parties_do_not():
    shared = [sent(n) for n in range(3)] + [answered(n, place(n)) for n in range(3)]
    shared += [read(n, place(n), reader=f"r{n}") for n in range(3)]
    other = [read(0, place(0), party="sweep"), read(2, place(2), party="sweep")]

    assert check(shared).gap == 0
    assert check(shared + other).gap == 1


def test_the_longest_send_and_the_longest_gap_between_acknowledgements():
    events = [
        *(sent(0, at=0.0), answered(0, place(0), at=1.0)),
        *(sent(1, at=1.0), answered(1, place(1), at=4.0)),
        *(sent(2, at=4.0), answered(2, None, "unknown", at=10.0)),
    ]

    verdict = check(events)

    assert (verdict.longest_send, verdict.longest_gap) == (6.0, 3.0)
    assert longest_gap(events, 2.0, 9.0) == 5.0


def test_recovery_is_the_first_acknowledgement_by_the_broker_and_the_first_message_read_of_it():
    events = [
        Marked(2.0, "healed"),
        answered(0, place(0, broker="b"), at=3.0),
        answered(1, place(0, broker="a"), at=5.0),
        read(1, place(0, broker="a"), at=6.0),
    ]

    assert first_ack(events, marked(events, "healed"), "a") == 3.0
    assert first_ack(events, marked(events, "healed")) == 1.0
    assert first_ack(events, 5.5, "a") is None
    assert first_read(events, 2.0, "a") == 4.0


def test_what_was_never_marked_is_an_error():
    with pytest.raises(LookupError, match="healed"):
        marked([], "healed")


def test_attempts_on_a_broker_include_those_that_failed():
    event = Answered(
        3.0,
        MessageId("p", 0),
        "stored",
        place(0),
        (Attempt("b", "unknown", 1.0), Attempt("a", "stored", 0.1)),
    )

    assert [a.outcome for a in attempts_on([event], "b", 2.0)] == ["unknown"]
    assert attempts_on([event], "b", 4.0) == []


A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)


@pytest.mark.parametrize(
    ("events", "sick", "seconds"),
    [
        pytest.param([Holds(1.0, "r", (A0, A1))], (), 0.0, id="owned from its first owner on"),
        pytest.param(
            [Holds(1.0, "r", (A0,)), Holds(2.0, "r", ()), Holds(5.0, "s", (A0,))], (), 3.0, id="free"
        ),
        pytest.param(
            [Holds(1.0, "r", (A0,)), Holds(2.0, "s", (A0,)), Holds(3.0, "r", ())], (), 0.0, id="two"
        ),
        pytest.param([Holds(1.0, "r", (A0, A1)), Holds(4.0, "r", (A0,))], (), 6.0, id="never owned again"),
        pytest.param([Holds(1.0, "r", (A0, B0)), Holds(2.0, "r", (B0,))], ("a",), 0.0, id="of a sick broker"),
        pytest.param([Holds(1.0, "r", (A0,))], ("a",), None, id="no broker is healthy"),
    ],
)
def test_the_longest_time_in_which_nobody_held_a_queue(events, sick, seconds):
    assert longest_unowned([*events, Marked(10.0, "stopped"), Holds(20.0, "r", ())], sick) == seconds


def test_a_history_without_an_end_has_no_such_time():
    with pytest.raises(LookupError, match="'stopped'"):
        longest_unowned([Holds(1.0, "r", (A0,))], ())
