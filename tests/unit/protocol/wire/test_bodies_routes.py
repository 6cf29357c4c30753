"""Parsed routes are remembered, within bounds."""

import gc
import tracemalloc

import pytest

from rmqtools.protocol.wire.bodies import parse_topic_route


def route(number: int, length: int) -> bytes:
    return b'{"orderTopicConf":"%d:%s"}' % (number, b"x" * length)


def test_a_route_read_again_is_the_same_value():
    assert parse_topic_route(route(1, 100)) is parse_topic_route(route(1, 100))


@pytest.mark.process  # it works for seconds
def test_remembered_routes_take_a_bounded_amount_of_memory():
    gc.collect()
    tracemalloc.start()
    for number in range(50):
        parse_topic_route(route(number, 2_000_000))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert kept < 20_000_000


@pytest.mark.process  # it works for seconds
def test_thousands_of_small_routes_are_remembered_within_bounds():
    gc.collect()
    tracemalloc.start()
    for number in range(5_000):
        parse_topic_route(route(number, 10_000))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert kept < 20_000_000
