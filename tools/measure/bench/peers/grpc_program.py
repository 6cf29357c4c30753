"""The official gRPC client's side.

    python -m tools.measure.bench.peers.grpc_program ENDPOINT PACKAGES HOME

PACKAGES is the folder that it was installed into, HOME where it writes its logs.
"""

import itertools
import os
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tools.measure.bench.program import Result, Work, serve

_PATIENCE = 150.0
_RECEIVED, _HIDDEN_SECONDS = 32, 60  # messages of a call; seconds until they would come again
_numbers = itertools.count()


class Grpc:
    """The client, and its producer, which is kept from round to round."""

    def __init__(self, endpoint: str, packages: str, home: str) -> None:
        sys.path.insert(0, packages)
        os.environ["HOME"] = home  # before the import: that opens the log
        import rocketmq

        self._api: Any = rocketmq
        self._config = rocketmq.ClientConfiguration(endpoint, rocketmq.Credentials(), request_timeout=20)
        self._producer: Any = None

    def send(self, work: Work) -> Result:
        """One at a time, or so many in flight."""
        if self._producer is None:
            self._producer = self._api.Producer(self._config, (work["topic"],))
            self._producer.startup()
        way = self._sync if work["mode"] == "sync" else self._async
        began = time.perf_counter()
        count, failed = way(work, began + float(work["seconds"]))
        return {"count": count, "seconds": time.perf_counter() - began, "failed": failed}

    def push(self, work: Work) -> Result:
        """Run a push consumer from its start to the last message."""
        ids: set[str] = set()
        total, done, api = int(work["total"]), threading.Event(), self._api

        class Listener(api.MessageListener):  # type: ignore[misc, name-defined]
            def consume(self, message: Any) -> Any:
                ids.add(message.message_id)
                if len(ids) == total:
                    done.set()
                return api.ConsumeResult.SUCCESS

        began = time.perf_counter()
        topics = {work["topic"]: api.FilterExpression()}
        consumer = api.PushConsumer(self._config, work["group"], Listener(), topics)
        consumer.startup()
        done.wait(_PATIENCE)
        seconds = time.perf_counter() - began
        consumer.shutdown()
        return {"count": len(ids), "seconds": seconds}

    def simple(self, work: Work) -> Result:
        """Run a simple consumer from its start to the last acknowledgement; a thread for each of a call."""
        from rocketmq.v5.exception import ClientException

        ids: set[str] = set()
        began = time.perf_counter()
        topics = {work["topic"]: self._api.FilterExpression()}
        consumer = self._api.SimpleConsumer(self._config, work["group"], topics, await_duration=5)
        consumer.startup()
        with ThreadPoolExecutor(_RECEIVED) as threads:
            while len(ids) < int(work["total"]) and time.perf_counter() < began + _PATIENCE:
                try:
                    messages = consumer.receive(_RECEIVED, _HIDDEN_SECONDS)
                except ClientException:  # right after the start the proxy may not know the client's settings
                    time.sleep(0.01)
                    continue
                list(threads.map(consumer.ack, messages))
                ids.update(message.message_id for message in messages)
        seconds = time.perf_counter() - began
        consumer.shutdown()
        return {"count": len(ids), "seconds": seconds}

    def close(self) -> None:
        """Close the producer."""
        if self._producer is not None:
            self._producer.shutdown()

    def _sync(self, work: Work, end: float) -> tuple[int, int]:
        count = 0
        while time.perf_counter() < end:
            self._producer.send(self._message(work))
            count += 1
        return count, 0

    def _async(self, work: Work, end: float) -> tuple[int, int]:
        flight, sent = int(work["flight"]), list[Future[Any]]()
        free = threading.Semaphore(flight)
        while time.perf_counter() < end:
            free.acquire()
            future = self._producer.send_async(self._message(work))
            future.add_done_callback(lambda _: free.release())
            sent.append(future)
        failed = sum(future.exception() is not None for future in sent)
        return len(sent) - failed, failed

    def _message(self, work: Work) -> Any:
        message = self._api.Message()
        message.topic, message.tag, message.keys = work["topic"], "TagA", f"k{next(_numbers)}"
        message.body = b"x" * int(work["size"])
        message.add_property("src", "bench")
        return message


if __name__ == "__main__":
    grpc = Grpc(*sys.argv[1:])
    try:
        serve({"send": grpc.send, "push": grpc.push, "simple": grpc.simple})
    finally:
        grpc.close()
