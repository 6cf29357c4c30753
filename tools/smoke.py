"""Smoke test of an installed package: it needs nothing but the package, and no server.

    python tools/smoke.py [--compiled | --pure]

Sends, reads and consumes on the cluster in the process. ``--compiled`` and ``--pure`` check whether the
compiled module is active.
"""

import argparse
import sys
import threading
from collections.abc import Sequence

TOPIC, COUNT = "smoke", 100
_PATIENCE = 60.0  # seconds


def send_and_consume() -> None:
    """Send messages, and consume each of them.

    Raises:
        AssertionError: a message is missing, or came twice.
    """
    from rmqtools import ConsumeFromWhere, Message, Producer, ProducerConfig, PushConsumer, PushConsumerConfig
    from rmqtools.testing import FakeCluster

    with FakeCluster() as cluster:
        cluster.create_topic(TOPIC, queues=4)
        with Producer(ProducerConfig(name_server=cluster.name_server, group="senders")) as producer:
            for number in range(COUNT):
                producer.send(Message(TOPIC, b"%d" % number, tags="new", keys=[f"key-{number}"]))
        received: list[bytes] = []
        is_complete = threading.Event()

        def listen(messages, context):  # type: ignore[no-untyped-def]  # as users write it
            received.extend(message.body for message in messages)
            if len(received) >= COUNT:
                is_complete.set()

        consumer = PushConsumer(
            PushConsumerConfig(
                name_server=cluster.name_server,
                group="receivers",
                consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            )
        )
        consumer.subscribe(TOPIC, listen, tags="new")
        with consumer:
            assert is_complete.wait(_PATIENCE), f"{len(received)} of {COUNT} messages came"
        assert sorted(received) == sorted(b"%d" % number for number in range(COUNT))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the smoke test; 1 if it fails."""
    parser = argparse.ArgumentParser(prog="tools/smoke.py", description=(__doc__ or "").partition("\n")[0])
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--compiled", action="store_true", help="the compiled module must be active")
    kind.add_argument("--pure", action="store_true", help="the compiled module must be missing")
    given = parser.parse_args(arguments)
    from rmqtools import __version__
    from rmqtools.compiled import twins

    is_compiled = twins is not None
    if (given.compiled and not is_compiled) or (given.pure and is_compiled):
        print(f"the compiled module is {'there' if is_compiled else 'missing'}", file=sys.stderr)
        return 1
    send_and_consume()
    print(f"rmqtools {__version__}: {COUNT} messages sent and consumed; compiled module: {is_compiled}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
