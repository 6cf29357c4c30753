"""Consume in a service that is stopped by SIGTERM, as by Kubernetes or systemd, at no cost to its group.

python examples/service_consumer.py --name-server 127.0.0.1:9876 --topic Example

Closing stops fetching, lets listeners finish, commits, and leaves the group: other members take its queues
over at once. With asyncio: ``loop.add_signal_handler(signal.SIGTERM, stop.set)``, and ``await stop.wait()``
in an ``async with`` block.
"""

import signal
import threading
import time
from typing import Annotated

import typer

from rmqtools import ConsumeContext, ConsumeFromWhere, MessageExt, PushConsumer, PushConsumerConfig


def say(line: str) -> None:
    """Print a line with one write: ``print`` writes its end apart, and listeners run in several threads."""
    print(line + "\n", end="", flush=True)


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    topic: Annotated[str, typer.Option(help="What to listen to.")] = "Example",
    group: Annotated[str, typer.Option(help="Its members share the messages.")] = "example-service",
    work: Annotated[float, typer.Option(help="Seconds that each message takes.")] = 0.0,
    threads: Annotated[int, typer.Option(help="Messages handled at the same time.")] = 20,
) -> None:
    """Listen until SIGTERM or Ctrl-C."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    config = PushConsumerConfig(
        name_server=name_server,
        group=group,
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        consume_threads=threads,
        close_timeout=25.0,  # less than the time until SIGKILL, which Kubernetes sends after 30 s
    )

    def handle(messages: list[MessageExt], context: ConsumeContext) -> None:
        for message in messages:
            say(f"begun {message.queue_offset}")
            time.sleep(work)
            say(f"handled {message.queue_offset}")

    consumer = PushConsumer(config)
    consumer.subscribe(topic, handle)
    with consumer:
        say("started")
        stop.wait()
        say("stopping")
    say("stopped")


if __name__ == "__main__":
    typer.run(main)
