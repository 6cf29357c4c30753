"""One member of the group, as it runs on each staging machine: prints a line for each message.

python -m examples.staging_pinned.member --name-server 127.0.0.1:9876 --ip 10.0.0.2

``client_ip`` is only the address in the member's name (its client id), by which pins choose it: no socket
is bound to it. On a real machine leave it out: it is then the address from which that reaches the cluster.
"""

import signal
import threading
from collections.abc import Sequence
from typing import Annotated

import typer

from rmqtools import ConsumeContext, ConsumeFromWhere, MessageExt, PushConsumer, PushConsumerConfig
from rmqtools.allocate import AllocateByPins


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    ip: Annotated[str | None, typer.Option(help="The address in its name.")] = None,
    topic: Annotated[str, typer.Option(help="What to listen to.")] = "Staging",
    group: Annotated[str, typer.Option(help="Its members share the queues.")] = "staging-billing",
) -> None:
    """Consume until SIGTERM or Ctrl-C."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())

    def bill(messages: Sequence[MessageExt], context: ConsumeContext) -> None:
        for message in messages:
            print(message.body.decode(), flush=True)

    config = PushConsumerConfig(
        name_server=name_server,
        group=group,
        client_ip=ip,
        pin_poll_interval=1.0,  # seconds until a pin is noticed; default 5
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    consumer = PushConsumer(config, strategy=AllocateByPins(when_absent="nobody"))
    consumer.subscribe(topic, bill)
    with consumer:
        ended.wait()


if __name__ == "__main__":
    typer.run(main)
