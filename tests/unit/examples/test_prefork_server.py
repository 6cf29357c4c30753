"""The prefork example on a scripted cluster: real processes, forked."""

import asyncio
import os
import sys

import pytest

from tests.support.scripted_cluster import ScriptedCluster, stored


@pytest.mark.process
def test_the_prefork_example_sends_from_every_worker_with_a_client_of_its_own():
    ended = []

    async def scenario() -> None:
        async with ScriptedCluster({"broker-a": stored}).serving() as cluster:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "examples.prefork_server", "--name-server", cluster.name_server),
                stdout=asyncio.subprocess.PIPE,
                env={name: text for name, text in os.environ.items() if name != "NAMESRV_ADDR"},
            )
            out, _ = await asyncio.wait_for(process.communicate(), 100)
            ended.extend([process.returncode, out])

    asyncio.run(scenario())

    assert ended == [0, b"200 messages from 2 workers\n"]
