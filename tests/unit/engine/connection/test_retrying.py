"""Look-ups that are repeated: for how long, and how often."""

import asyncio

import pytest

from rmqtools.engine.connection.retrying import look_up
from rmqtools.errors import RemotingConnectError


@pytest.mark.parametrize("timeout", [0.5, 3.0, 4.2])
async def test_a_look_up_that_is_always_refused_ends_at_its_timeout(timeout):
    loop, calls = asyncio.get_running_loop(), 0

    async def refused() -> None:
        nonlocal calls
        calls += 1
        raise RemotingConnectError("refused")

    began = loop.time()
    with pytest.raises(RemotingConnectError, match="refused"):
        await look_up(refused, timeout=timeout)

    assert timeout <= loop.time() - began < timeout + 0.1
    assert 4 <= calls <= 15
