"""A prefork server: the parent forks its workers, and each worker makes its own client after the fork.

python examples/prefork_server.py --name-server 127.0.0.1:9876 --topic Example
"""

import multiprocessing
from typing import Annotated

import typer

from rmqtools import Message, Producer, ProducerConfig


def work(name_server: str, topic: str, worker: int, count: int) -> None:
    """One worker: a producer made before the fork would share its connections with every worker."""
    with Producer(ProducerConfig(name_server=name_server, group="prefork")) as producer:
        producer.send_many([Message(topic, b"%d-%d" % (worker, n)) for n in range(count)])


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    topic: Annotated[str, typer.Option(help="Where to send.")] = "Example",
    workers: Annotated[int, typer.Option(help="How many processes.")] = 2,
    count: Annotated[int, typer.Option(help="Messages of each worker.")] = 100,
) -> None:
    """Fork the workers and wait for them."""
    fork = multiprocessing.get_context("fork")
    processes = [fork.Process(target=work, args=(name_server, topic, n, count)) for n in range(workers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if failed := [process.exitcode for process in processes if process.exitcode]:
        raise SystemExit(f"{len(failed)} workers failed")
    print(f"{workers * count} messages from {workers} workers")


if __name__ == "__main__":
    typer.run(main)
