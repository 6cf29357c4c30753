"""The bound of sends that are in flight: who enters, who waits, and what is given back."""

import asyncio
import threading
from contextlib import asynccontextmanager

import pytest

from rmqtools import Message, ProducerConfig
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.engine.producer.in_flight import InFlight, Reservation, reservation_of
from rmqtools.errors import BackPressureError, ClientStateError, MessageRejectedError, UnknownOutcomeError
from rmqtools.model.result import SendsInFlight
from rmqtools.testing import Reaction
from tests.support.patience import PATIENCE
from tests.unit.engine.producer.test_accumulator import BATCH, SINGLE, lingering, plain, send_all, slow


def bound(**settings) -> InFlight:
    wanted = {"back_pressure_for_async_send_num": 2, "back_pressure_for_async_send_size": 100} | settings
    return InFlight(ProducerConfig(name_server="127.0.0.1:9876", **wanted), SYSTEM_CLOCK)


def is_full(in_flight: InFlight) -> bool:
    """Return whether a send of one byte finds no room now; it leaves at once."""
    place = Reservation(1)
    try:
        in_flight.enter_on_thread(place, 0.0)
    except BackPressureError:
        return True
    finally:
        in_flight.leave(place)
    return False


def test_a_body_larger_than_the_bound_enters_alone():
    in_flight, large = bound(), Reservation(1000)
    in_flight.enter_on_thread(large, 1.0)

    assert is_full(in_flight)
    in_flight.leave(large)
    assert not is_full(in_flight)


def test_leaving_twice_gives_back_once():
    in_flight, places = bound(), [Reservation(1), Reservation(1)]
    for place in places:
        in_flight.enter_on_thread(place, 1.0)
    in_flight.leave(places[0])
    in_flight.leave(places[0])
    in_flight.enter_on_thread(Reservation(1), 1.0)

    assert is_full(in_flight)


def test_the_error_names_what_is_in_flight_and_the_settings():
    in_flight = bound(back_pressure_waits=False)
    for _ in range(2):
        in_flight.enter_on_thread(Reservation(7), 1.0)

    with pytest.raises(BackPressureError, match=r"2 messages and 14 bytes .*_send_num=2 or"):
        in_flight.enter_on_thread(Reservation(7), 60.0)


def test_a_thread_that_finds_no_room_in_its_time_gives_up():
    in_flight, began = bound(back_pressure_for_async_send_num=1), SYSTEM_CLOCK.monotonic()
    in_flight.enter_on_thread(Reservation(1), 1.0)

    with pytest.raises(BackPressureError):
        in_flight.enter_on_thread(Reservation(1), 0.2)
    assert 0.2 <= SYSTEM_CLOCK.monotonic() - began < PATIENCE


async def test_a_small_message_does_not_overtake_a_large_one_that_waits():
    in_flight, first, entered = bound(), Reservation(60), []
    in_flight.enter_on_thread(first, 1.0)

    async def enter(size: int) -> None:
        async with in_flight.room(Message("T", b"x" * size), 10.0):
            entered.append(size)

    tasks = [asyncio.create_task(enter(size)) for size in (50, 1)]
    await asyncio.sleep(0.01)
    assert (entered, in_flight.figures()) == ([], SendsInFlight(messages=1, body_bytes=60, waiting=2))
    in_flight.leave(first)
    await asyncio.gather(*tasks)
    assert entered == [50, 1]


async def test_a_thread_and_a_task_wait_in_one_line():
    in_flight, loop = bound(back_pressure_for_async_send_num=1), asyncio.get_running_loop()
    entered: list[str] = []
    first, second = Reservation(1), Reservation(1)
    in_flight.enter_on_thread(first, 1.0)

    def block() -> None:
        in_flight.enter_on_thread(second, 60.0)
        loop.call_soon_threadsafe(entered.append, "thread")

    thread = threading.Thread(target=block)
    thread.start()
    while not in_flight.figures().waiting:  # noqa: ASYNC110 - a thread tells nobody
        await asyncio.sleep(0.001)

    async def enter() -> None:
        async with in_flight.room(Message("T", b"x"), 10.0):
            entered.append("task")

    task = asyncio.create_task(enter())
    await asyncio.sleep(0.01)
    in_flight.leave(first)
    await asyncio.to_thread(thread.join)
    in_flight.leave(second)
    await task
    assert entered == ["thread", "task"]


@pytest.mark.parametrize("wrong", [None, "text", Message("T", None)])  # type: ignore[arg-type]  # the mistake
def test_what_is_no_message_needs_no_bytes_and_is_refused_by_its_send(wrong):
    assert reservation_of(wrong).size == 0


def test_items_of_a_view_may_be_wider_than_a_byte():
    assert reservation_of(Message("T", memoryview(b"12345678").cast("I"))).size == 8  # type: ignore[arg-type]


# sends on an event loop: the bound holds, and each end gives back


BOUND = 4


@pytest.fixture(params=[0.0, 0.01], ids=["single", "linger"])
def linger(request) -> float:
    return request.param


@asynccontextmanager
async def bounded(linger, **settings):
    wanted = {"linger": linger, "enable_backpressure_for_async_mode": True} | settings
    wanted.setdefault("back_pressure_for_async_send_num", BOUND)
    async with lingering(**wanted) as (producer, cluster):
        yield producer, cluster


def silent(cluster) -> None:
    for code in (SINGLE, BATCH):
        cluster.fault(code=code, times=None, answer=Reaction.SILENCE)


async def test_no_more_messages_are_in_flight_than_the_bound_and_all_are_stored(linger):
    most = 0
    async with bounded(linger) as (producer, cluster):
        slow(cluster, 0.05, times=None)
        tasks = send_all(producer, plain(3 * BOUND))
        while not all(task.done() for task in tasks):
            most = max(most, producer.sends_in_flight().messages)
            await asyncio.sleep(0.001)

        assert (most, len(cluster.messages("T"))) == (BOUND, 3 * BOUND)
        assert producer.sends_in_flight() == SendsInFlight(0, 0, 0)


async def test_orders_are_kept_and_counted(linger):
    async with bounded(linger) as (producer, cluster):
        slow(cluster, 0.01, times=None)
        messages = [Message("T", b"%d" % n, sharding_key="one") for n in range(3 * BOUND)]
        tasks = [asyncio.create_task(producer.send_orderly(message)) for message in messages]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert producer.sends_in_flight().messages == BOUND
        results = await asyncio.gather(*tasks)

    assert [result.queue_offset for result in results] == list(range(3 * BOUND))


async def test_a_send_that_finds_no_room_in_its_time_was_not_sent(linger):
    async with bounded(linger) as (producer, cluster):
        silent(cluster)
        tasks = send_all(producer, plain(BOUND), timeout=5.0)
        await asyncio.sleep(0)
        with pytest.raises(BackPressureError, match="nothing was sent") as caught:
            await producer.send(Message("T", b"late"), timeout=0.2)
        assert caught.value.attempts == ()
        await asyncio.gather(*tasks, return_exceptions=True)

        assert not any(b"late" in (request.body or b"") for request in cluster.requests())


async def test_waiting_takes_from_the_time_of_the_send(linger):
    async with bounded(linger) as (producer, cluster):
        silent(cluster)
        loop = asyncio.get_running_loop()
        tasks = send_all(producer, plain(BOUND), timeout=1.0)
        await asyncio.sleep(0)
        began = loop.time()
        with pytest.raises(UnknownOutcomeError):
            await producer.send(Message("T", b"later"), timeout=1.5)

        assert loop.time() - began == pytest.approx(1.5, abs=0.3)
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_room_is_given_back_by_answers_errors_timeouts_and_cancelled_calls(linger):
    async with bounded(linger) as (producer, cluster):
        await producer.send(Message("T", b"stored"))
        with pytest.raises(MessageRejectedError):
            await producer.send(Message("T", b""))
        silent(cluster)
        with pytest.raises(UnknownOutcomeError):
            await producer.send(Message("T", b"silence"), timeout=0.1)
        tasks = send_all(producer, plain(2 * BOUND))
        await asyncio.sleep(0.01)
        seen = producer.sends_in_flight()
        assert (seen.messages, seen.waiting) == (BOUND, BOUND)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

        assert producer.sends_in_flight() == SendsInFlight(0, 0, 0)


async def test_closing_ends_the_waiting_at_once(linger):
    async with bounded(linger) as (producer, cluster):
        silent(cluster)
        tasks = send_all(producer, plain(2 * BOUND))
        await asyncio.sleep(0)
        closing = asyncio.create_task(producer.close())
        ended = await asyncio.wait_for(asyncio.gather(*tasks[BOUND:], return_exceptions=True), 0.1)

        assert [type(error) for error in ended] == [ClientStateError] * BOUND
        await closing
        await asyncio.gather(*tasks, return_exceptions=True)
        assert producer.sends_in_flight() == SendsInFlight(0, 0, 0)


async def test_nothing_is_counted_unless_it_is_enabled():
    async with lingering() as (producer, cluster):
        slow(cluster, 0.01, times=None)
        tasks = send_all(producer, plain(2))
        await asyncio.sleep(0)
        assert producer.sends_in_flight() == SendsInFlight(0, 0, 0)
        await asyncio.gather(*tasks)
