"""Questions of a driver's planning that wait for peers which do not answer for a while."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import RemotingError
from rmqtools.log import get_logger

log = get_logger(__name__)
T = TypeVar("T")
K = TypeVar("K")

_QUESTIONS_AT_ONCE: Final = 64
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 2.0  # seconds between requests to a peer that does not answer


async def ask_all(
    question: Callable[[K], Awaitable[T]], keys: list[K], asked: Callable[[K], str], seconds: float
) -> dict[K, T]:
    """Ask for all keys at the same time; the first error stops all further requests.

    Args:
        question: asks for one key.
        asked: names the peer that a key's question goes to.
        seconds: how long to repeat questions that get no answer.

    Raises:
        RemotingError: no answer within the time limit.
    """
    patience = _Patience(seconds)
    slots = asyncio.Semaphore(_QUESTIONS_AT_ONCE)

    async def ask(key: K) -> T:
        async with slots:
            return await patience.ask(asked(key), lambda: question(key))

    tasks = [asyncio.ensure_future(ask(key)) for key in keys]
    try:
        return dict(zip(keys, await asyncio.gather(*tasks), strict=True))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Patience:
    """Repeats requests without an answer, up to a time limit; logs each silent peer once.

    A silent peer gets one request at a time, however many questions wait for it.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadline = SYSTEM_CLOCK.monotonic() + seconds
        self._silent: set[str] = set()
        self._logged: set[str] = set()
        self._probes: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def ask(self, peer: str, question: Callable[[], Awaitable[T]]) -> T:
        """Repeat ``question`` until it is answered.

        Raises:
            RemotingError: no answer within the time limit.
        """
        while True:
            try:
                return await question()
            except RemotingError as error:
                self._note_silence(peer, error)
            async with self._probes[peer]:
                pause = _FIRST_PAUSE
                while peer in self._silent:
                    await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                    pause = min(2 * pause, _LONGEST_PAUSE)
                    try:
                        answer = await question()
                    except RemotingError as error:
                        self._note_silence(peer, error)
                    else:
                        self._silent.discard(peer)
                        return answer

    def _note_silence(self, peer: str, error: RemotingError) -> None:
        if SYSTEM_CLOCK.monotonic() >= self._deadline:
            raise error
        self._silent.add(peer)
        if peer not in self._logged:
            self._logged.add(peer)
            log.warning("planning_waits", peer=peer, seconds=self._seconds, reason=str(error))
