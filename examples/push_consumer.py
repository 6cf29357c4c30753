"""Consume a topic as a member of a group: failed messages are delivered again, consumed ones are not.

python examples/push_consumer.py --name-server 127.0.0.1:9876 --topic Example
"""

import threading
from collections import Counter
from typing import Annotated

import typer

from rmqtools import ConsumeContext, ConsumeFromWhere, MessageExt, PushConsumer, PushConsumerConfig


class Listener:
    """Counts messages; fails once at the first one, as code with a broken connection would."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._has_failed = False
        self.heard: Counter[str] = Counter()
        self.retried = 0
        self.called = threading.Event()

    def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> None:
        """Handle messages on one of ``consume_threads`` threads; to return is to acknowledge."""
        self.called.set()
        with self._lock:
            if not self._has_failed:
                self._has_failed = True
                context.delay_level_when_next_consume = 1  # again in a second
                raise ConnectionError("the database is away")
            for message in messages:
                self.heard[message.broker_name] += 1
                self.retried += message.reconsume_times > 0


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    topic: Annotated[str, typer.Option(help="What to listen to.")] = "Example",
    group: Annotated[str, typer.Option(help="Its members share the messages.")] = "example-push",
    seconds: Annotated[float, typer.Option(help="End when nothing has come for so long.")] = 3.0,
) -> None:
    """Listen until no more messages come."""
    listener = Listener()
    config = PushConsumerConfig(
        name_server=name_server,
        group=group,
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        consume_message_batch_max_size=32,
    )
    consumer = PushConsumer(config)
    consumer.subscribe(topic, listener, tags="*")
    with consumer:
        while listener.called.wait(seconds):
            listener.called.clear()
    for broker_name, count in sorted(listener.heard.items()):
        print(f"{broker_name}: {count} messages")
    print(f"{listener.heard.total()} messages, {listener.retried} of them at the second try")


if __name__ == "__main__":
    typer.run(main)
