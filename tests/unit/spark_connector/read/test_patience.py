"""A driver's requests to peers that fail at once: few, however many queues there are."""

import asyncio

import pytest

from rmqtools.errors import RemotingError
from spark_connector.read.patience import ask_all
from tests.support.skipping_loop import run_skipping

QUEUES = range(1000)
FIRST_QUESTIONS = 64  # at the same time, before anything is known of the peer
SECONDS = 10.0


class Peer:
    """A peer that refuses connections until a time of the loop."""

    def __init__(self, *, silent_for: float) -> None:
        self.requests = 0
        self._returns_at = asyncio.get_running_loop().time() + silent_for

    async def answer(self, queue: int) -> int:
        self.requests += 1
        await asyncio.sleep(0)
        if asyncio.get_running_loop().time() < self._returns_at:
            raise RemotingError("connection refused")
        return queue


def ask(peer: Peer):
    return ask_all(peer.answer, list(QUEUES), lambda queue: "broker broker-a", SECONDS)


def test_a_peer_that_fails_at_once_gets_at_most_thirty_more_requests_in_ten_seconds(caplog):
    async def scenario():
        peer = Peer(silent_for=3600)
        with pytest.raises(RemotingError, match="connection refused"):
            await ask(peer)
        return peer.requests

    assert FIRST_QUESTIONS < run_skipping(scenario) <= FIRST_QUESTIONS + 30
    assert caplog.text.count("planning_waits") == 1


def test_once_a_peer_answers_again_all_queues_are_asked_at_the_same_time():
    async def scenario():
        loop = asyncio.get_running_loop()
        began, peer = loop.time(), Peer(silent_for=3.0)
        answers = await ask(peer)
        return answers, loop.time() - began, peer.requests

    answers, seconds, requests = run_skipping(scenario)

    assert answers == dict(zip(QUEUES, QUEUES, strict=True))
    assert seconds < SECONDS
    assert requests <= len(QUEUES) + FIRST_QUESTIONS + 30
