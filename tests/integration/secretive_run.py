"""A program that uses secrets everywhere and shows all it can: tests search what it leaves for them.

python -m tests.integration.secretive_run NAME_SERVER KEY_FILE
"""

import asyncio
import json
import logging
import pickle
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rmqtools import (
    Admin,
    ClientConfig,
    ConsumeFromWhere,
    HalfMessage,
    LocalTransactionState,
    Message,
    MessageExt,
    MessageModel,
    Producer,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
    PushConsumer,
    PushConsumerConfig,
    TransactionListener,
    TransactionProducer,
)
from rmqtools.compat.client import Producer as MovedProducer
from rmqtools.errors import RocketMQError
from rmqtools.model.queue import MessageQueue

NOWHERE = "127.0.0.1:1"


class Undecided(TransactionListener):
    """Never called."""

    def execute_local_transaction(self, message: HalfMessage, arg: object) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN


def show(config: ClientConfig) -> None:
    """Print a config in every way that prints one."""
    values = asdict(config)
    print(config, repr(config), f"{config}", values, json.dumps(values, default=str), sep="\n")
    print(config.secret_key, config.security_token, config.tls_key_password)
    logging.getLogger("user").debug("config %s %r %s", config, values, values["secret_key"])
    assert pickle.loads(pickle.dumps(config)) == config


def fail(call: Callable[[], object]) -> None:
    """Print the exception that a call raises, with all causes."""
    try:
        call()
    except (RocketMQError, AttributeError) as error:
        print(repr(error), repr(getattr(error, "attempts", "")))
        traceback.print_exc()


def main(name_server: str, key_file: str) -> None:
    """Run every role once, and every failure that knows the secrets."""
    logging.basicConfig(level=logging.DEBUG)
    key, token, password = Path(key_file).read_text().split()
    keys: dict[str, Any] = {"access_key": "alice", "secret_key": key, "security_token": token}
    tls: dict[str, Any] = {"tls_enable": True, "tls_cert_file": key_file, "tls_key_password": password}
    roles = (ClientConfig, ProducerConfig, PushConsumerConfig, PullConsumerConfig)
    for role in roles:
        group: dict[str, Any] = {"group": "g"} if "Consumer" in role.__name__ else {}
        show(role(name_server=name_server, **keys, **tls, **group))
    use(name_server, keys)
    fail(lambda: Admin(ClientConfig(name_server=name_server, **keys, **tls)).start())
    fail(lambda: ClientConfig.from_mapping({"name_server": NOWHERE, "secret_key": key}))
    fail(lambda: ClientConfig.from_mapping({"name_server": NOWHERE, "secretkeyy": key}))
    fail(lambda: ProducerConfig(name_server=name_server, **keys).no_such_field)  # type: ignore[attr-defined]  # the mistake
    with Producer(ProducerConfig(name_server=NOWHERE, **keys, request_timeout=0.2)) as producer:
        fail(lambda: producer.send(Message("t", b"x"), timeout=0.3))
    print(asyncio.run(asyncio.sleep(0, "done")))


def use(name_server: str, keys: "dict[str, Any]") -> None:
    """Send, read and administer with signed requests."""
    with Admin(ClientConfig(name_server=name_server, **keys)) as admin:
        admin.create_topic("t", read_queue_nums=1, write_queue_nums=1)
        fail(lambda: admin.min_offset(MessageQueue("none", "broker-a", 0)))
    with Producer(ProducerConfig(name_server=name_server, **keys)) as producer:
        print(producer, vars(producer), producer.send(Message("t", b"x")))
        fail(lambda: producer.send(Message("no-such-topic", b"x"), timeout=0.5))
    transactions = ProducerConfig(name_server=name_server, group="tx", **keys)
    with TransactionProducer(transactions, Undecided()) as producer:
        print(producer, vars(producer))
    config = PushConsumerConfig(
        name_server=name_server,
        group="push",
        message_model=MessageModel.BROADCASTING,
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        **keys,
    )
    heard, consumer = threading.Event(), PushConsumer(config)

    def listen(messages: list[MessageExt], _: object) -> None:
        print(messages)
        heard.set()

    consumer.subscribe("t", listen)
    with consumer:
        print(consumer, vars(consumer), heard.wait(30))
    with PullConsumer(PullConsumerConfig(name_server=name_server, group="pull", **keys)) as pulling:
        pulling.subscribe("t")
        print(pulling.poll(timeout=1.0))
    moved = MovedProducer("moved")
    moved.set_name_server_address(name_server)
    moved.set_session_credentials("alice", keys["secret_key"])
    print(moved, repr(moved))


if __name__ == "__main__":
    main(*sys.argv[1:])
