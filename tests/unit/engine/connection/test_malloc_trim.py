"""Memory that answers have used is kept for the answers after them."""

import os
import platform
import subprocess
import sys

import pytest

# 10 MB in pieces as large as answers, taken and given back, on a thread: each has a heap of its own.
_PAGES_OF_A_ROUND = """
import asyncio, resource, threading
from rmqtools import ClientConfig
from rmqtools.engine.connection.client import ClientCore

async def start_client():
    core = ClientCore(ClientConfig(name_server="127.0.0.1:1"))
    core.start()
    await core.close()

def use_memory():
    for _ in range(5):
        [bytearray(b"x" * 100_000) for _ in range(100)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        [bytearray(b"x" * 100_000) for _ in range(100)]
    print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 10)

asyncio.run(start_client())
user = threading.Thread(target=use_memory)
user.start()
user.join()
"""


@pytest.mark.process
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have rules of their own")
def test_a_process_with_a_client_does_not_take_the_pages_of_freed_answers_again():
    untuned = {
        name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))
    }
    program = [sys.executable, "-c", _PAGES_OF_A_ROUND]
    ran = subprocess.run(program, capture_output=True, text=True, check=True, env=untuned)

    assert int(ran.stdout) < 100  # pages; 2,400 where all are taken again
