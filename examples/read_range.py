"""Read all messages that a topic has now as Arrow record batches, without a consumer group.

python examples/read_range.py --name-server 127.0.0.1:9876 --topic Example
"""

from typing import Annotated

import typer

from rmqtools import Admin, Client, ClientConfig, QueueRange
from rmqtools.arrow import read_range


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    topic: Annotated[str, typer.Option(help="What to read.")] = "Example",
) -> None:
    """Read every queue from its first offset to its last."""
    total = 0
    with Client(ClientConfig(name_server=name_server)) as client:
        admin = Admin(client)
        for queue in admin.fetch_subscribe_queues(topic):
            whole = QueueRange(queue, admin.min_offset(queue), admin.max_offset(queue))
            rows = sum(batch.num_rows for batch in read_range(client, whole))
            print(
                f"{queue.broker_name} queue {queue.queue_id}: [{whole.begin}, {whole.end}): {rows} messages"
            )
            total += rows
    print(f"{total} messages in all")


if __name__ == "__main__":
    typer.run(main)
