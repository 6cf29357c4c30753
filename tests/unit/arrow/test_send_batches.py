"""Sending batches: portions, counts, errors that name the row."""

from concurrent.futures import Future
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest

from rmqtools import Message, MessageQueue, SendStatus
from rmqtools.arrow import BadRow, SendReport, send_batches
from rmqtools.errors import MessageRejectedError, SendError, TopicNotFoundError, UnknownOutcomeError
from rmqtools.model.encoded_batch import EncodedBatch
from tests.unit.arrow.fake_producer import (
    QUEUES,
    REFUSED,
    STORED,
    UNANSWERED,
    FakeProducer,
    bodies_of,
    messages_of,
    result,
)


def bodies(*values: bytes) -> pa.RecordBatch:
    return pa.record_batch({"body": pa.array(values, pa.binary())})


def one_row_a_batch(*answers) -> FakeProducer:
    return FakeProducer(answers, max_batch_bytes=1, compress_over_bytes=10)


def test_all_rows_are_sent_in_order_in_bounded_portions():
    producer = FakeProducer()
    batches = [bodies(*(b"%d" % row for row in range(begin, begin + 12_500))) for begin in (0, 12_500)]

    report = send_batches(producer, batches, topic="T")

    calls = [[body for batch in batches for body in bodies_of(batch)] for batches in producer.sent]
    assert list(chain(*calls)) == [b"%d" % row for row in range(25_000)]
    assert max(map(len, calls)) <= 10_000
    assert report.acked == 25_000


class Slow(FakeProducer):
    """Answers batches when their answer is awaited; ``events`` records the order."""

    def __init__(self, *answers) -> None:
        super().__init__(*answers)
        self.events: list[str] = []
        self.awaited: list[Future[Any]] = []

    def send_encoded_async(self, batches, *, series):
        self.events.append(f"sent {len(self.awaited)}")
        self.awaited.append(Awaited(self, super().send_encoded_async(batches, series=series)))
        return self.awaited[-1]

    def reserve_msg_ids(self, count):
        self.events.append(f"encoded {len(self.awaited)}")
        return super().reserve_msg_ids(count)


class Awaited(Future[Any]):
    """The answer to batches that are on the wire until it is awaited."""

    def __init__(self, producer: Slow, answer: Future[Any]) -> None:
        super().__init__()
        self.producer, self.answer = producer, answer

    def result(self, timeout=None):
        self.producer.events.append(f"waited {self.producer.awaited.index(self)}")
        self.set_result(None)
        answer = self.answer.result()
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_the_next_portion_is_encoded_while_two_are_on_the_wire():
    producer = Slow()

    report = send_batches(producer, [bodies(b"a", b"b"), *[bodies(b"c")] * 3], topic="T")

    assert report.acked == 5
    assert producer.events == [
        *("encoded 0", "sent 0", "encoded 1", "sent 1", "encoded 2", "waited 0", "sent 2", "encoded 3"),
        *("waited 1", "sent 3", "waited 2", "waited 3"),
    ]


NOT_PLACED = SendError("no", [REFUSED])


@pytest.mark.parametrize(
    ("first", "second", "error", "acked", "text"),
    [
        pytest.param([NOT_PLACED], result(count=3), SendError, 3, "2 of 5 rows could not", id="stored"),
        pytest.param(
            *([NOT_PLACED], UnknownOutcomeError("who knows", [UNANSWERED])),
            *(UnknownOutcomeError, 0, "5 of 5"),
            id="unknown",
        ),
        pytest.param(
            TopicNotFoundError("no topic"),
            result(count=3),
            TopicNotFoundError,
            3,
            "no topic",
            id="as-a-whole",
        ),
    ],
)
def test_what_is_on_the_wire_beside_a_portion_that_failed_is_counted_too(first, second, error, acked, text):
    report = SendReport()
    producer = Slow(first, [second])
    batches = [bodies(b"a", b"b"), *[bodies(b"c", b"d", b"e")] * 2]

    with pytest.raises(error, match=text) as caught:
        send_batches(producer, batches, topic="T", report=report)

    assert type(caught.value) is error
    assert len(producer.sent) == 2
    assert (report.acked, report.failed) == (acked, 5 - acked)


def test_what_is_on_the_wire_is_counted_before_an_error_of_the_rows_behind_it_is_raised():
    report = SendReport()

    with pytest.raises(MessageRejectedError, match="row 2: body is empty"):
        send_batches(FakeProducer(), [bodies(b"a", b"b"), bodies(b"")], topic="T", report=report)

    assert report.acked == 2


def test_nothing_is_sent_behind_a_portion_that_could_not_be_placed():
    producer = FakeProducer([SendError("no", [REFUSED])])
    report = SendReport()

    with pytest.raises(SendError, match="2 of 2 rows could not be placed"):
        send_batches(producer, [bodies(b"a", b"b"), bodies(b"c")], topic="T", report=report)

    assert len(producer.sent) == 1
    assert (report.acked, report.failed) == (0, 2)


def test_a_failure_on_the_wire_goes_before_one_of_the_rows_behind_it():
    producer = FakeProducer([SendError("no", [REFUSED])])

    with pytest.raises(SendError, match="2 of 2 rows could not be placed"):
        send_batches(producer, [bodies(b"a", b"b"), bodies(b"")], topic="T")


def test_an_interruption_cancels_what_is_on_the_wire():
    producer = Slow()

    def batches():
        yield bodies(b"a")
        yield bodies(b"b")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        send_batches(producer, batches(), topic="T")

    assert [future.cancelled() for future in producer.awaited] == [True, True]


@pytest.mark.parametrize("behind", [[bodies(b"c")], []], ids=["between", "at-the-end"])
def test_an_interruption_while_it_waits_cancels_what_is_on_the_wire(behind, monkeypatch):
    producer = Slow()

    def interrupt(timeout=None):
        raise KeyboardInterrupt

    def batches():
        yield bodies(b"a")
        yield bodies(b"b")
        monkeypatch.setattr(producer.awaited[0], "result", interrupt)
        yield from behind

    with pytest.raises(KeyboardInterrupt):
        send_batches(producer, batches(), topic="T")

    assert [future.cancelled() for future in producer.awaited] == [True, True]


@pytest.mark.process
def test_large_rows_are_not_all_encoded_at_once():
    producer = FakeProducer()
    body = bytes(4 * 1024 * 1024)

    send_batches(producer, [bodies(*[body] * 12)], topic="T")

    assert [len(batches) for batches in producer.sent] == [3, 3, 3, 3]


def test_results_are_counted_by_what_became_of_the_rows():
    producer = one_row_a_batch(
        result(),
        result(REFUSED, STORED),
        result(UNANSWERED, UNANSWERED, STORED),
        result(status=SendStatus.SLAVE_NOT_AVAILABLE),
    )

    report = send_batches(producer, [bodies(b"a", b"b", b"c", b"dd")], topic="T")

    expected = {"acked": 4, "retried": 2, "not_replicated": 1, "unknown": 2, "failed": 0, "bytes": 5}
    assert report.counts() == expected | {"by_broker": {"a": 4}}


def test_a_failure_is_raised_and_the_counts_tell_how_far_it_came():
    producer = one_row_a_batch(
        result(), SendError("no", [REFUSED]), UnknownOutcomeError("who knows", [UNANSWERED]), result()
    )
    report = SendReport()

    with pytest.raises(UnknownOutcomeError, match=r"2 of 4 rows could not be placed; the first: no \(a:0"):
        send_batches(producer, [bodies(b"a", b"b", b"c", b"d")], topic="T", report=report)

    assert (report.acked, report.unknown, report.failed) == (2, 1, 2)


def test_a_failure_is_told_by_the_request_that_was_tried():
    untried = SendError("not tried: a request before it failed")
    producer = one_row_a_batch(untried, SendError("refused", [REFUSED]))

    with pytest.raises(SendError, match="the first: refused"):
        send_batches(producer, [bodies(b"a", b"b")], topic="T")


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        pytest.param(b"", "row 2503: body is empty", id="empty-body"),
        pytest.param(b"x" * 101, "row 2503: body has 101 bytes", id="body-too-large"),
    ],
)
def test_a_refused_row_is_named_by_its_number_in_the_task(bad, text):
    batches = [bodies(*[b"a"] * 2501), bodies(b"b", b"c", bad, b"d")]

    with pytest.raises(MessageRejectedError, match=text):
        send_batches(FakeProducer(max_message_bytes=100), batches, topic="T")


def test_a_report_tells_where_the_rows_of_each_queue_end():
    producer = one_row_a_batch(result(offset=7), result(offset=9), result(offset=8))

    report = send_batches(producer, [bodies(b"a", b"b", b"c")], topic="T")

    assert report.end_offsets == {QUEUES[0]: 10}


def test_a_delayed_row_reaches_no_queue_yet_since_its_offset_is_of_another():
    report = SendReport()
    batches = [
        EncodedBatch(topic="T", message=Message("T", b"a", delay_level=3)),
        EncodedBatch(topic="T", message=Message("T", b"b", deliver_at_ms=4_102_444_800_000)),
        EncodedBatch(topic="T", message=Message("T", b"too large for a batch")),
    ]

    for batch, offset in zip(batches, (900, 901, 7), strict=True):
        report.count(batch, result(offset=offset))

    assert report.end_offsets == {QUEUES[0]: 8}
    assert (report.acked, report.by_broker) == (3, {"a": 3})


def test_reports_of_tasks_add_up():
    other = MessageQueue("T", "b", 7)
    total = SendReport(1, 2, 3, 4, 5, 6, {"a": 1}, {QUEUES[0]: 5})

    total.add(SendReport(10, 20, 30, 40, 50, 60, {"a": 2, "b": 3}, {QUEUES[0]: 4, other: 1}))

    assert total == SendReport(11, 22, 33, 44, 55, 66, {"a": 3, "b": 3}, {QUEUES[0]: 5, other: 1})


def test_extra_properties_are_made_per_portion_and_the_columns_for_them_are_not_sent():
    producer = FakeProducer()
    batch = pa.record_batch({"body": pa.array([b"a", b"b"]), "id": pa.array([7, 8])})

    def extra(part: pa.RecordBatch, first_row: int) -> dict[str, pa.Array]:
        return {"place": pa.array([f"{first_row}/{id_}" for id_ in part.column("id").to_pylist()])}

    send_batches(producer, [batch, batch], topic="T", extra_properties=extra, unsent=["id"])

    places = [message.properties["place"] for (batch,) in producer.sent for message in messages_of(batch)]
    assert places == ["0/7", "0/8", "2/7", "2/8"]


def test_rows_that_are_not_valid_are_handed_over_and_the_rest_is_sent():
    producer, found = FakeProducer(), list[BadRow]()

    report = send_batches(producer, [bodies(b"1", b"", b"3")], topic="T", on_bad_rows=found.extend)

    assert [(bad.row["body"].to_pylist(), bad.reason.split(":")[0]) for bad in found] == [([b""], "row 1")]
    assert (report.acked, [*chain(*map(bodies_of, chain(*producer.sent)))]) == (2, [b"1", b"3"])
