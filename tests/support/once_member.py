"""A program that consumes a topic once: effects and keys in one SQLite database.

    python -m tests.support.once_member NAME_SERVER GROUP TOPIC DATABASE [--dies MOMENT]

Prints ``started``, then ``dropped N`` whenever the number of dropped messages has changed. MOMENT is
``before-commit`` or ``before-acknowledgement``: at the first message it ends itself there by kill -9.
"""

import argparse
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from rmqtools import ConsumeContext, MessageExt, PushConsumer, PushConsumerConfig
from rmqtools.once import SqlStore, deduplicate

EFFECTS = sa.Table("effects", sa.MetaData(), sa.Column("body", sa.LargeBinary))


def open_database(path: Path) -> sa.Engine:
    engine = sa.create_engine(f"sqlite:///{path}", connect_args={"timeout": 120})

    @sa.event.listens_for(engine, "connect")
    def _(connection: Any, _record: object) -> None:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")

    return engine


def _end_with_the_input() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("name_server", "group", "topic", "database"):
        parser.add_argument(name)
    parser.add_argument("--dies", choices=("before-commit", "before-acknowledgement"))
    given = parser.parse_args()
    store = SqlStore(open_database(given.database), group=given.group)

    def book(messages: list[MessageExt], _: ConsumeContext, connection: sa.Connection) -> None:
        connection.execute(sa.insert(EFFECTS), [{"body": each.body} for each in messages])
        if given.dies == "before-commit":
            os.kill(os.getpid(), signal.SIGKILL)

    once = deduplicate(store, book)

    def listen(messages: list[MessageExt], context: ConsumeContext) -> Any:
        before = once.dropped
        answer = once(messages, context)
        if given.dies == "before-acknowledgement":
            os.kill(os.getpid(), signal.SIGKILL)
        if once.dropped != before:
            print(f"dropped {once.dropped}\n", end="", flush=True)  # whole: other threads print too
        return answer

    config = PushConsumerConfig(
        name_server=given.name_server,
        group=given.group,
        consume_from="CONSUME_FROM_FIRST_OFFSET",
        consume_message_batch_max_size=32,
    )
    consumer = PushConsumer(config)
    consumer.subscribe(given.topic, listen)
    with consumer:
        print("started", flush=True)
        threading.Thread(target=_end_with_the_input, daemon=True).start()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        signal.sigwait({signal.SIGTERM})


if __name__ == "__main__":
    main()
