"""Offsets that are stored while the interpreter exits: no executor takes work by then."""

import subprocess
import sys

import pytest

from rmqtools.engine.group.local_offset_store import LocalFileOffsetStore
from rmqtools.model.queue import MessageQueue

QUEUE = MessageQueue("T", "broker-a", 0)
PROGRAM = """
import asyncio, atexit, pathlib, sys
from rmqtools.engine.group.local_offset_store import LocalFileOffsetStore
from rmqtools.model.queue import MessageQueue

store = LocalFileOffsetStore(pathlib.Path(sys.argv[1]))
queue = MessageQueue("T", "broker-a", 0)
store.update(queue, 7)
loop = asyncio.new_event_loop()  # asyncio.run would start a thread at its end: refused in Python 3.12
atexit.register(lambda: loop.run_until_complete(store.persist([queue])))
"""


@pytest.mark.process
def test_offsets_persisted_at_exit_are_in_the_file(tmp_path):
    path = tmp_path / "offsets.json"
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, check=False, timeout=60
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert LocalFileOffsetStore(path).read_memory(QUEUE) == 7
