"""Sending batches: portions, counts, errors that name the row."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from rmqtools import Message, MessageQueue, Outcome, SendAttempt, SendResult, SendStatus
from rmqtools.arrow import SendReport, send_batches
from rmqtools.errors import MessageRejectedError, SendError, SendManyError, UnknownOutcomeError
from rmqtools.policy.validate import check_message

QUEUE = MessageQueue("T", "broker-a", 0)
STORED = SendAttempt(QUEUE, "127.0.0.1:10911", 0.1, Outcome.STORED)
REFUSED = SendAttempt(QUEUE, "127.0.0.1:10911", 0.1, Outcome.REFUSED, "busy")
UNANSWERED = SendAttempt(QUEUE, "127.0.0.1:10911", 0.1, Outcome.UNKNOWN, "timeout")


def result(*attempts: SendAttempt, status: SendStatus = SendStatus.SEND_OK, offset: int = 0) -> SendResult:
    return SendResult(status, QUEUE, offset, "7F01", "0A01", attempts=attempts or (STORED,))


class Recorder:
    """Takes messages as a producer does, and answers what it was told to."""

    def __init__(self, *answers: Sequence[SendResult | SendError]) -> None:
        self.answers = list(answers)
        self.sent: list[list[Message]] = []

    def send_many(self, messages: Sequence[Message]) -> Sequence[SendResult | SendError]:
        for message in messages:
            check_message(message, 100)
        self.sent.append(list(messages))
        results = self.answers.pop(0) if self.answers else [result() for _ in messages]
        if any(isinstance(one, SendError) for one in results):
            raise SendManyError("some failed", results)
        return results


def bodies(*values: bytes) -> pa.RecordBatch:
    return pa.record_batch({"body": pa.array(values, pa.binary())})


def test_all_rows_are_sent_in_order_in_bounded_portions():
    producer = Recorder()
    batches = [bodies(*(b"%d" % row for row in range(begin, begin + 2500))) for begin in (0, 2500)]

    report = send_batches(producer, batches, topic="T")

    sent = [message.body for portion in producer.sent for message in portion]
    assert sent == [b"%d" % row for row in range(5000)]
    assert max(map(len, producer.sent)) <= 2000
    assert report.counts()["acked"] == 5000


def test_results_are_counted_by_what_became_of_the_rows():
    answers = [
        result(),
        result(REFUSED, STORED),
        result(UNANSWERED, STORED),
        result(status=SendStatus.SLAVE_NOT_AVAILABLE),
    ]

    report = send_batches(Recorder(answers), [bodies(b"a", b"b", b"c", b"d")], topic="T")

    expected = {"acked": 4, "retried": 2, "not_replicated": 1, "unknown": 1, "failed": 0}
    assert report.counts() == expected


def test_a_failure_is_raised_and_the_counts_tell_how_far_it_came():
    answers = [result(), SendError("no", [REFUSED]), UnknownOutcomeError("who knows", [UNANSWERED]), result()]
    report = SendReport()

    with pytest.raises(SendManyError):
        send_batches(Recorder(answers), [bodies(b"a", b"b", b"c", b"d")], topic="T", report=report)

    expected = {"acked": 2, "retried": 0, "not_replicated": 0, "unknown": 1, "failed": 1}
    assert report.counts() == expected


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        pytest.param(b"", "row 2503: body is empty", id="empty-body"),
        pytest.param(b"x" * 101, "row 2503, the largest body: body has 101 bytes", id="body-too-large"),
    ],
)
def test_a_refused_row_is_named_by_its_number_in_the_task(bad, text):
    batches = [bodies(*[b"a"] * 2501), bodies(b"b", b"c", bad, b"d")]

    with pytest.raises(MessageRejectedError, match=text):
        send_batches(Recorder(), batches, topic="T")


def test_a_report_tells_where_the_rows_of_each_queue_end():
    report = send_batches(
        Recorder([result(offset=7), result(offset=9), result(offset=8)]),
        [bodies(b"a", b"b", b"c")],
        topic="T",
    )

    assert report.end_offsets == {QUEUE: 10}


def test_reports_of_tasks_add_up():
    other = MessageQueue("T", "broker-b", 0)
    total = SendReport(1, 2, 3, 4, 5, {QUEUE: 5})

    total.add(SendReport(10, 20, 30, 40, 50, {QUEUE: 4, other: 1}))

    assert total == SendReport(11, 22, 33, 44, 55, {QUEUE: 5, other: 1})
