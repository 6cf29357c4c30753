"""The wrapper on every kind of store: what reaches the listener, and what is answered for the batch."""

import asyncio
import contextvars

import pytest

from rmqtools import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from rmqtools.engine.user_functions import check_listener
from rmqtools.once import MemoryStore, deduplicate, message_key
from tests.unit.once.listening import context, message

LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER
SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT


class Heard:
    """A listener that notes offsets and gives the answers it was told, then None."""

    def __init__(self, *answers):
        self.offsets, self._answers = [], list(answers)

    def __call__(self, messages, context, connection=None):
        self.offsets.append([each.queue_offset for each in messages])
        answer = self._answers.pop(0) if self._answers else None
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, int):
            context.ack_index = answer
            return None
        return answer


def test_a_copy_of_a_consumed_message_does_not_reach_the_listener(store):
    heard = Heard()
    listener = deduplicate(store, heard)

    answers = [listener([message(1)], context()), listener([message(2, unique="unique-1")], context())]

    assert answers == [None, None]
    assert heard.offsets == [[1]]
    assert listener.dropped == 1


def test_of_copies_in_one_batch_the_first_reaches_the_listener(store):
    heard, given = Heard(), context()
    listener = deduplicate(store, heard)

    assert listener([message(1), message(2), message(3, unique="unique-1")], given) is None

    assert heard.offsets == [[1, 2]]
    assert (given.ack_index, listener.dropped) == (2, 1)


@pytest.mark.parametrize("answer", [RuntimeError("no"), LATER, -1])
def test_a_message_whose_listener_failed_reaches_it_again(store, answer):
    heard = Heard(answer)
    listener = deduplicate(store, heard)

    try:
        listener([message(1)], context())
    except RuntimeError:
        assert isinstance(answer, RuntimeError)
    listener([message(1)], context())
    listener([message(1)], context())

    assert heard.offsets == [[1], [1]]


def test_a_failing_status_is_handed_on(store):
    assert deduplicate(store, Heard(LATER))([message(1)], context()) is LATER
    assert deduplicate(store, Heard(SUSPEND))([message(2)], context(orderly=True)) is SUSPEND


def test_ack_index_counts_the_messages_that_the_listener_saw(store):
    heard, given = Heard(None, 0), context()
    listener = deduplicate(store, heard)
    listener([message(1)], context())

    assert listener([message(1), message(2), message(3)], given) is None

    assert given.ack_index == 1  # the copy and message 2
    listener([message(3)], context())
    assert heard.offsets == [[1], [2, 3], [3]]


def test_a_message_past_a_failed_one_is_dropped_when_it_comes_again():
    store, heard, given = MemoryStore(), Heard(), context()
    listener = deduplicate(store, heard)
    with store.claim([message_key(message(1))], 60):
        listener([message(1), message(2)], given)
    assert given.ack_index == -1  # message 1 is busy, so both come again

    listener([message(1), message(2)], again := context())

    assert heard.offsets == [[2], [1]]
    assert again.ack_index == 1


def test_an_orderly_queue_waits_for_a_message_that_another_member_is_consuming():
    store, heard = MemoryStore(), Heard()
    listener = deduplicate(store, heard)
    with store.claim([message_key(message(1))], 60):
        assert listener([message(1)], context(orderly=True)) is SUSPEND

    assert heard.offsets == []


def test_spark_stamps_and_own_keys_decide_what_a_copy_is(store):
    heard = Heard()
    listener = deduplicate(store, heard, key=lambda each: each.properties.get("order"))
    stamped = {"SPARK_STAMP": "w/0/1/7", "SPARK_HASH": "ab"}

    listener(
        [message(1, **stamped), message(2, **stamped), message(3, **stamped | {"SPARK_HASH": "cd"})],
        context(),
    )
    listener([message(4, order="o1"), message(5, order="o1"), message(6)], context())

    assert heard.offsets == [[1, 3], [4, 6]]


@pytest.mark.parametrize("status", [ConsumeOrderlyStatus.COMMIT, ConsumeOrderlyStatus.ROLLBACK])
def test_commits_of_the_listener_are_refused(status):
    with pytest.raises(ValueError, match="cannot use auto_commit=False, COMMIT or ROLLBACK"):
        deduplicate(MemoryStore(), Heard(status))([message(1)], context(orderly=True))


def test_a_consumer_accepts_the_wrapper_as_a_listener():
    async def coroutine(messages, context, connection):
        """Never called."""

    plain = deduplicate(MemoryStore(), lambda messages, context, connection: None)

    check_listener("Orders", plain, awaited=False)
    check_listener("Orders", deduplicate(MemoryStore(), coroutine), awaited=True)


async def test_a_coroutine_function_gets_every_message_once(store):
    heard = Heard()

    async def listen(messages, context, connection=None):
        await asyncio.sleep(0)
        return heard(messages, context)

    listener = deduplicate(store, listen)
    given = context()

    answers = [
        await listener([message(1), message(2)], context()),
        await listener([message(2), message(3)], given),
    ]

    assert answers == [None, None]
    assert (heard.offsets, given.ack_index, listener.dropped) == ([[1, 2], [3]], 1, 1)


async def test_a_message_whose_coroutine_failed_or_was_cancelled_reaches_it_again(store):
    heard, entered = Heard(RuntimeError("no")), asyncio.Event()

    async def listen(messages, context, connection=None):
        answer = heard(messages, context)
        entered.set()
        if len(heard.offsets) == 2:
            await asyncio.Event().wait()
        return answer

    listener = deduplicate(store, listen)
    with pytest.raises(RuntimeError, match="no"):
        await listener([message(1)], context())
    call = asyncio.create_task(listener([message(1)], context()))
    await entered.wait()
    call.cancel()
    await asyncio.wait({call})
    await listener([message(1)], context())

    assert call.cancelled()
    assert heard.offsets == [[1], [1], [1]]


async def test_the_messages_of_a_cancelled_coroutine_stay_claimed_until_it_has_ended():
    entered, left, may_end, answers = asyncio.Event(), asyncio.Event(), asyncio.Event(), []

    async def listen(messages, context):
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
            await may_end.wait()

    store = MemoryStore()
    call = asyncio.create_task(deduplicate(store, listen)([message(1)], context()))
    await entered.wait()
    call.cancel()
    await left.wait()
    other = context()
    deduplicate(store, lambda messages, context: answers.append(messages))([message(1)], other)
    may_end.set()
    await asyncio.wait({call})

    assert (answers, other.ack_index) == ([], -1)
    assert call.cancelled()


async def test_coroutines_that_wait_for_one_another_do_not_wait_for_threads():
    """More calls at once than a small pool of threads would have."""
    together, entered = asyncio.Event(), []

    async def listen(messages, context):
        entered.append(messages[0].queue_offset)
        if len(entered) == 40:
            together.set()
        await together.wait()

    listener = deduplicate(MemoryStore(), listen)
    await asyncio.gather(*(listener([message(n)], context()) for n in range(40)))

    assert sorted(entered) == [*range(40)]


async def test_a_coroutine_has_the_context_variables_of_its_caller():
    variable, seen = contextvars.ContextVar("variable", default="none"), []

    async def listen(messages, context):
        seen.append(variable.get())

    variable.set("of the caller")
    await deduplicate(MemoryStore(), listen)([message(1)], context())

    assert seen == ["of the caller"]


def test_what_is_no_function_and_windows_of_nothing_are_refused():
    with pytest.raises(TypeError, match="want a function listener"):
        deduplicate(MemoryStore(), "listen")  # type: ignore[call-overload]  # the mistake
    with pytest.raises(ValueError, match="window=0: want a number of seconds above 0"):
        deduplicate(MemoryStore(), Heard(), window=0)
