"""Destination of ``consume --exec``: a command that runs once for each message."""

import json
import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from rmqtools import MessageExt
from rmqtools.cli.output_messages import formatter
from rmqtools.cli.saving.sink import PARQUET, Sink
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.model.copy_message import own_properties
from rmqtools.model.queue import queue_name


def command_sink(text: str, form: str, own: str | None, output: Path | None) -> Sink:
    """Return a function that runs a command for each message, one after the other.

    Standard input is the body, or what ``form`` or ``own`` makes of the message; ``MESSAGE_*`` variables say
    where it is stored, and its keys, tags and properties.

    Args:
        text: the command with its arguments, quoted as for a shell; no shell runs it.
        form: ``text`` (the body), ``json`` or ``hex``.
        own: a format of the user's own, in place of ``form``.
        output: must be None: the command has its own output.

    Raises:
        ConfigError: the command cannot be read, or the form is none for it.
    """
    if form == PARQUET or output is not None:
        raise ConfigError(f"--exec {text!r}: a command gets each message: leave out --output and parquet")
    try:
        command = shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"--exec {text!r}: {error}") from error
    if not command:
        raise ConfigError("--exec '': want a command")
    is_body = form == "text" and own is None
    write = (lambda message: message.body) if is_body else formatter(form, own)

    def run(messages: Sequence[MessageExt]) -> None:
        for message in messages:
            _run(command, message, write(message))

    return run


def _run(command: Sequence[str], message: MessageExt, given: bytes) -> None:
    try:
        done = subprocess.run(command, input=given, env=os.environ | _variables(message), check=False)
    except OSError as error:
        raise ConfigError(f"--exec {command[0]}: {error.strerror}: want a program") from error
    if done.returncode:
        place = f"{queue_name(message)} offset {message.queue_offset} of {message.topic}"
        remedy = f"go on there with --queue {queue_name(message)} --from {message.queue_offset}"
        raise RocketMQError(
            f"--exec: {command[0]} ended with exit code {done.returncode} at {place}: {remedy}"
        )


def _variables(message: MessageExt) -> dict[str, str]:
    values = {
        "TOPIC": message.topic,
        "BROKER": message.broker_name,
        "QUEUE": message.queue_id,
        "OFFSET": message.queue_offset,
        "ID": message.msg_id,
        "KEYS": message.keys or "",
        "TAGS": message.tags or "",
        "STORE_TIME_MS": message.store_timestamp_ms,
        "PROPERTIES": json.dumps(own_properties(message.properties)),
    }
    return {f"MESSAGE_{name}": str(value).replace("\0", "") for name, value in values.items()}
