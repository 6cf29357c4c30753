"""The native client's side.

    python -m tools.measure.bench.peers.native_program NAME_SERVER PACKAGES LIBRARY

PACKAGES and LIBRARY are as in ``tests/support/native_program.py``. Its clients are never shut down, and the
program ends by ``_exit``: the library's own ways out hang or crash.
"""

import ctypes.util
import itertools
import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tools.measure.bench.program import Result, Work, serve

_PATIENCE = 150.0
_numbers = itertools.count()


class Native:
    """The client, loaded at the first work."""

    def __init__(self, name_server: str, packages: str, library: str) -> None:
        sys.path.insert(0, packages)
        ctypes.util.find_library = lambda name: library
        self._name_server = name_server
        self._producer: Any = None

    def send(self, work: Work) -> Result:
        """On so many threads, each one message at a time."""
        import rocketmq.client as api

        if self._producer is None:
            self._producer = api.Producer("bench_peers")
            self._producer.set_name_server_address(self._name_server)
            self._producer.start()
        body, threads = "x" * int(work["size"]), int(work["flight"])
        began = time.perf_counter()
        end = began + float(work["seconds"])

        def line(_: int) -> int:
            count = 0
            while time.perf_counter() < end:
                count += self._producer.send_sync(_message(api, work["topic"], body)).status == 0
            return count

        with ThreadPoolExecutor(threads) as pool:
            count = sum(pool.map(line, range(threads)))
        return {"count": count, "seconds": time.perf_counter() - began}

    def push(self, work: Work) -> Result:
        """Run a push consumer from its start to the last message, in a child: it cannot be shut down."""
        return _in_child(lambda: self._push(work))

    def _push(self, work: Work) -> Result:
        import rocketmq.client as api

        places: set[tuple[int, int]] = set()
        total, done = int(work["total"]), threading.Event()

        def consume(message: Any) -> Any:
            places.add((message.queue_id, message.queue_offset))
            if len(places) == total:
                done.set()
            return api.ConsumeStatus.CONSUME_SUCCESS

        began = time.perf_counter()
        consumer = api.PushConsumer(work["group"])
        consumer.set_name_server_address(self._name_server)
        consumer.subscribe(work["topic"], consume)
        consumer.start()
        done.wait(_PATIENCE)
        seconds = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return {"count": len(places), "seconds": seconds, "resident_mb": peak}


def _message(api: Any, topic: str, body: str) -> Any:
    message = api.Message(topic)
    message.set_body(body)
    message.set_tags("TagA")
    message.set_keys(f"k{next(_numbers)}")
    message.set_property("src", "bench")
    return message


def _in_child(work: Callable[[], Result]) -> Result:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    if not text:
        raise RuntimeError("the native client has ended without an answer")
    result: Result = json.loads(text)
    return result


if __name__ == "__main__":
    native = Native(*sys.argv[1:])
    serve({"send": native.send, "push": native.push})
    os._exit(0)
