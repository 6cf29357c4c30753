"""Create a topic, and list its queues.

python examples/create_topic.py --name-server 127.0.0.1:9876 --topic Example
"""

from typing import Annotated

import typer

from rmqtools import Admin, ClientConfig


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    topic: Annotated[str, typer.Option(help="Its name.")] = "Example",
    queues: Annotated[int, typer.Option(min=1, help="Queues on each broker.")] = 4,
) -> None:
    """Create a topic on all brokers, or change the number of its queues."""
    with Admin(ClientConfig(name_server=name_server)) as admin:
        admin.create_topic(topic, read_queue_nums=queues, write_queue_nums=queues)
        for queue in admin.fetch_publish_queues(topic):
            print(queue.broker_name, queue.queue_id)


if __name__ == "__main__":
    typer.run(main)
