"""The bound itself: who enters, who waits, and what is given back."""

import asyncio
import threading

import pytest

from rmqtools import Message, ProducerConfig
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.engine.producer.in_flight import InFlight, Reservation, reservation_of
from rmqtools.errors import BackPressureError


def bound(**settings) -> InFlight:
    wanted = {"back_pressure_for_async_send_num": 2, "back_pressure_for_async_send_size": 100} | settings
    return InFlight(ProducerConfig(name_server="127.0.0.1:9876", **wanted), SYSTEM_CLOCK)


def is_full(in_flight: InFlight, size: int = 1) -> bool:
    """Return whether a send of this size finds no room now; it leaves at once."""
    place = Reservation(size)
    try:
        in_flight.enter_on_thread(place, 0.0)
    except BackPressureError:
        return True
    finally:
        in_flight.leave(place)
    return False


def test_bytes_are_bounded_too_and_given_back():
    in_flight, place = bound(), Reservation(60)
    in_flight.enter_on_thread(place, 1.0)

    assert [is_full(in_flight, 40), is_full(in_flight, 41)] == [False, True]
    in_flight.leave(place)
    assert not is_full(in_flight, 41)


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


async def test_a_small_message_does_not_overtake_a_large_one_that_waits():
    in_flight, first, entered = bound(), Reservation(60), []
    in_flight.enter_on_thread(first, 1.0)

    async def enter(size: int) -> None:
        async with in_flight.room(Message("T", b"x" * size), 10.0):
            entered.append(size)

    tasks = [asyncio.create_task(enter(size)) for size in (50, 1)]
    await asyncio.sleep(0.01)
    assert entered == []
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
