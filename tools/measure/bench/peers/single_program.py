"""One scenario with single messages, by our simple consumer or by that of the official gRPC client.

    python -m tools.measure.bench.peers.single_program SIDE ADDRESS PACKAGES HOME SCENARIO TOPIC GROUP TOTAL

SIDE is ``ours`` (ADDRESS: name server) or ``grpc`` (ADDRESS: proxy; PACKAGES: where its client is installed;
HOME: where it writes its logs). Prints a line of JSON.
"""

import copy
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from rmqtools import ConsumeFromWhere, SimpleConsumer, SimpleConsumerConfig
from rmqtools.errors import AcknowledgeError, RocketMQError

_AT_ONCE, _HIDDEN = 32, 60  # messages of a call; seconds until they would come again
_SHORT = 10  # seconds; proxies refuse less
_PATIENCE = 150.0  # seconds in which a message must come


class Side(Protocol):
    """A simple consumer."""

    def receive(self, count: int, hidden: int, wait: int) -> Sequence[Any]:
        """Return up to ``count`` messages."""

    def ack(self, message: Any) -> None:
        """Acknowledge one message; raises as the client does."""

    def ack_all(self, messages: Sequence[Any]) -> None:
        """Acknowledge many, in the client's quickest way that reports each."""

    def extend(self, message: Any, seconds: int) -> tuple[Any, Any]:
        """Hide a message longer; return it with its old receipt and with its new one."""

    def tries(self, message: Any) -> int:
        """Return how often it was delivered before."""

    def close(self) -> None:
        """Close the client."""


class Ours:
    """Our consumer."""

    def __init__(self, address: str, topic: str, group: str, *, fifo: bool, batched: bool) -> None:
        self._batched = batched
        self._consumer = SimpleConsumer(
            SimpleConsumerConfig(
                name_server=address,
                group=group,
                fifo=fifo,
                consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
                max_reconsume_times=1,
            )
        )
        self._consumer.subscribe(topic)
        self._consumer.start()

    def receive(self, count: int, hidden: int, wait: int) -> Sequence[Any]:
        """See :class:`Side`."""
        return self._consumer.receive(max_messages=count, invisible_duration=hidden, wait=wait)

    def ack(self, message: Any) -> None:
        """See :class:`Side`."""
        self._consumer.ack(message)

    def ack_all(self, messages: Sequence[Any]) -> None:
        """See :class:`Side`."""
        self._consumer.ack(messages, batched=self._batched)

    def extend(self, message: Any, seconds: int) -> tuple[Any, Any]:
        """See :class:`Side`."""
        return message, self._consumer.change_invisible_duration(message, seconds)

    def tries(self, message: Any) -> int:
        """See :class:`Side`."""
        return int(message.reconsume_times)

    def close(self) -> None:
        """See :class:`Side`."""
        self._consumer.close()


class Grpc:
    """The official gRPC client's. It takes its place in ``sys.modules`` when it is made."""

    def __init__(self, address: str, topic: str, group: str, *, packages: str, home: str) -> None:
        sys.path.insert(0, packages)
        os.environ["HOME"] = home  # before the import: that opens the log
        import rocketmq
        from rocketmq.v5.exception import ClientException

        self._error = ClientException
        api: Any = rocketmq
        config = api.ClientConfiguration(address, api.Credentials(), request_timeout=20)
        topics = {topic: api.FilterExpression()}
        self._consumer = api.SimpleConsumer(config, group, topics, await_duration=5)
        self._consumer.startup()
        self._threads = ThreadPoolExecutor(_AT_ONCE)

    def receive(self, count: int, hidden: int, wait: int) -> Sequence[Any]:
        """See :class:`Side`."""
        self._consumer.await_duration = wait
        try:
            return list(self._consumer.receive(count, hidden))
        except self._error:  # right after the start the proxy may not know the client's settings
            time.sleep(0.1)
            return ()

    def ack(self, message: Any) -> None:
        """See :class:`Side`."""
        self._consumer.ack(message)

    def ack_all(self, messages: Sequence[Any]) -> None:
        """See :class:`Side`."""
        list(self._threads.map(self._consumer.ack, messages))

    def extend(self, message: Any, seconds: int) -> tuple[Any, Any]:
        """See :class:`Side`."""
        old = copy.copy(message)
        self._consumer.change_invisible_duration(message, seconds)
        return old, message

    def tries(self, message: Any) -> int:
        """See :class:`Side`."""
        return int(message.delivery_attempt) - 1

    def close(self) -> None:
        """See :class:`Side`."""
        self._threads.shutdown()
        self._consumer.shutdown()


def said(call: Callable[[], object]) -> str:
    """Return the outcome of a call as its caller sees it."""
    try:
        call()
    except AcknowledgeError as error:
        return f"raises {type(error.failed[0][1]).__name__}"
    except RocketMQError as error:
        return f"raises {type(error).__name__}"
    except Exception as error:  # noqa: BLE001 - of another client
        return f"raises {type(error).__name__} ({str(error)[:60]})"
    return "returns"


def next_message(side: Side, hidden: int, patience: float = _PATIENCE) -> Any:
    """Return the next message; None: none came in time."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        for message in side.receive(1, hidden, 5):
            return message
    return None


def expired(side: Side) -> dict[str, object]:
    """Acknowledge a message after its invisible time."""
    message = next_message(side, _SHORT)
    time.sleep(_SHORT + 1)
    outcome = said(lambda: side.ack(message))
    again = next_message(side, _HIDDEN)
    return {"ack": outcome, "comes again": again is not None}


def twice(side: Side) -> dict[str, object]:
    """Acknowledge a message twice."""
    message = next_message(side, _HIDDEN)
    return {"first": said(lambda: side.ack(message)), "second": said(lambda: side.ack(message))}


def extended(side: Side) -> dict[str, object]:
    """Acknowledge by the receipt from before an extension, and by the one from after it."""
    old, new = side.extend(next_message(side, _SHORT), 2 * _SHORT)
    outcome = said(lambda: side.ack(old))
    again = next_message(side, _HIDDEN)  # it has the message that was not acknowledged
    if again is not None:
        side.ack(again)
    return {
        "ack by the old receipt": outcome,
        "comes again": again is not None,
        "by the new": said(lambda: side.ack(new)),
    }


def extended_new(side: Side) -> dict[str, object]:
    """Acknowledge by the receipt from after an extension."""
    _, new = side.extend(next_message(side, _SHORT), _SHORT)
    outcome = said(lambda: side.ack(new))
    return {
        "ack by the new receipt": outcome,
        "comes again": next_message(side, _HIDDEN, 3 * _SHORT) is not None,
    }


def fifo(side: Side) -> dict[str, object]:
    """Receive the second message of a message group before and after the first is acknowledged."""
    first = next_message(side, _HIDDEN)
    before = next_message(side, _HIDDEN, 6.0)
    side.ack(first)
    after = next_message(side, _HIDDEN)
    return {"second before the ack": before is not None, "second after it": after is not None}


def dead(side: Side) -> dict[str, object]:
    """Never acknowledge; count the deliveries. The caller looks for the dead letter."""
    tries = []
    while (message := next_message(side, _SHORT, 60.0)) is not None:
        tries.append(side.tries(message))
    return {"deliveries": len(tries)}


def rate(side: Side, total: int) -> dict[str, object]:
    """Receive and acknowledge 32 at a time."""
    messages = list(side.receive(_AT_ONCE, _HIDDEN, 5))  # connections are made, code is loaded
    side.ack_all(messages)
    count, began, cpu = 0, time.perf_counter(), time.process_time()
    while count < total and time.perf_counter() - began < _PATIENCE:
        messages = list(side.receive(_AT_ONCE, _HIDDEN, 5))
        if messages:
            side.ack_all(messages)
        count += len(messages)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return {"count": count, "seconds": seconds, "cpu": cpu}


SCENARIOS: dict[str, Callable[[Side], dict[str, object]]] = {
    "expired": expired,
    "twice": twice,
    "extended": extended,
    "extended_new": extended_new,
    "fifo": fifo,
    "dead": dead,
}


def main() -> None:
    """Run one scenario."""
    name, address, packages, home, scenario, topic, group, total = sys.argv[1:]
    side: Side
    if name == "grpc":
        side = Grpc(address, topic, group, packages=packages, home=home)
    else:
        side = Ours(address, topic, group, fifo=scenario == "fifo", batched=name == "ours-batched")
    try:
        found = rate(side, int(total)) if scenario == "rate" else SCENARIOS[scenario](side)
        print(json.dumps(found), flush=True)
    finally:
        side.close()


if __name__ == "__main__":
    main()
