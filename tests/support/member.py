"""A program that runs one push consumer of ours: the counterpart of Consumer.java.

    python -m tests.support.member NAME_SERVER GROUP TOPIC [OPTION]...

Writes the same JSON lines. Options: --strategy NAME, --orderly, --print, --fail N, --seed N, --trace TOPIC,
--instance NAME. Ends cleanly at SIGTERM or when standard input ends.
"""

import argparse
import faulthandler
import json
import signal
import sys
import threading
import zlib
from collections.abc import Sequence
from typing import Any

from rmqtools import (
    ConsumeConcurrentlyStatus,
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeOrderlyStatus,
    MessageExt,
    MessageQueue,
    PushConsumer,
    PushConsumerConfig,
)

_LOOK = 0.05  # seconds
_SLOW_CLOSE = 30.0  # seconds


class Member:
    """The consumer and its output."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._given = given
        self._failures = given.fail
        self._lock = threading.Lock()
        self._consumer = PushConsumer(_config(given), strategy=given.strategy)
        self._consumer.subscribe(given.topic, self._listen)

    def run(self, stop: threading.Event) -> None:
        """Consume until ``stop``; print the assignment whenever it has changed."""
        with self._consumer:
            self._say({"clientId": self._consumer.client_id})
            known: list[list[Any]] | None = None
            while not stop.wait(_LOOK):
                assigned = [_row(q) for q in self._consumer.queues if q.topic == self._given.topic]
                if assigned != known:
                    known = assigned
                    self._say({"assigned": assigned})
            faulthandler.dump_traceback_later(_SLOW_CLOSE)  # shows where a close hangs
        faulthandler.cancel_dump_traceback_later()
        self._say({"stopped": True})

    def _listen(self, messages: Sequence[MessageExt], context: ConsumeContext) -> Any:
        outcome = "success" if self._given.seed is None else _outcome(self._given.seed, messages[0])
        context.delay_level_when_next_consume = 0 if self._given.seed is None else 1
        with self._lock:
            failed = self._failures > 0 or outcome != "success"
            self._failures -= 1
        if self._given.print:
            for message in messages:
                self._say(_shown(message) | {"failed": failed})
        if outcome == "fail":
            suspend = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
            return suspend if self._given.orderly else ConsumeConcurrentlyStatus.RECONSUME_LATER
        if failed:
            raise RuntimeError("told to fail")
        return None

    def _say(self, row: dict[str, Any]) -> None:
        line = json.dumps(row)
        with self._lock:
            print(line, flush=True)


def _outcome(seed: str, message: MessageExt) -> str:
    """The same in Consumer.java: of eight deliveries one raises, and one more fails."""
    drawn = zlib.crc32(f"{seed}:{message.body.hex()}:{message.reconsume_times}".encode()) % 8
    return {0: "raise", 1: "fail"}.get(drawn, "success")


def _row(queue: MessageQueue) -> list[Any]:
    return [queue.topic, queue.broker_name, queue.queue_id]


def _shown(message: MessageExt) -> dict[str, Any]:
    return {
        "queueOffset": message.queue_offset,
        "brokerName": message.broker_name,
        "queueId": message.queue_id,
        "topic": message.topic,
        "msgId": message.msg_id,
        "body": message.body.hex(),
        "keys": message.keys,
        "tags": message.tags,
        "reconsumeTimes": message.reconsume_times,
    }


def _config(given: argparse.Namespace) -> PushConsumerConfig:
    return PushConsumerConfig(
        name_server=given.name_server,
        group=given.group,
        instance_name=given.instance,
        orderly=given.orderly,
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        poll_name_server_interval=1.0,
        heartbeat_broker_interval=1.0,
        enable_trace=given.trace is not None,
        trace_topic=given.trace or "RMQ_SYS_TRACE_TOPIC",
    )


def main() -> None:
    """Run until the command to stop."""
    parser = argparse.ArgumentParser()
    for name in ("name_server", "group", "topic"):
        parser.add_argument(name)
    parser.add_argument("--strategy", default="AVG")
    for name in ("--orderly", "--print"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--fail", type=int, default=0)
    parser.add_argument("--instance")
    parser.add_argument("--seed")
    parser.add_argument("--trace")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    member = Member(parser.parse_args())

    def stop_at_the_end_of_input() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=stop_at_the_end_of_input, daemon=True).start()
    member.run(stop)


if __name__ == "__main__":
    main()
