"""Where ``consume`` puts messages: standard output or a file; as text, JSON lines, hex or Parquet."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from rmqtools import MessageExt
from rmqtools.cli.output_messages import formatter
from rmqtools.errors import ConfigError

PARQUET = "parquet"
Sink = Callable[[Sequence[MessageExt]], None]


@contextmanager
def message_sink(form: str, own: str | None, output: Path | None) -> Iterator[Sink]:
    """Open the place, and yield a function that writes messages to it.

    Args:
        form: ``text``, ``json``, ``hex`` or ``parquet``.
        own: a format of the user's own, in place of ``form``.
        output: a file, which is replaced; None: standard output.

    Raises:
        ConfigError: an unknown field of ``own``, a file that cannot be written, or Parquet on a terminal.
    """
    if form == PARQUET and own is None:
        _check_parquet(output)
        from rmqtools.arrow import ParquetFile  # optional dependency

        with ParquetFile(output or sys.stdout.buffer) as file:
            yield file.write
        return
    write = formatter(form, own)
    with _opened(output) as out:

        def put(messages: Sequence[MessageExt]) -> None:
            out.write(b"".join(map(write, messages)))
            out.flush()

        yield put


def _check_parquet(output: Path | None) -> None:
    if find_spec("pyarrow") is None or find_spec("numpy") is None:
        raise ConfigError("--format parquet needs pyarrow: pip install 'rmqtools[arrow]'")
    if output is None and sys.stdout.isatty():
        raise ConfigError("--format parquet is no text for a terminal: give --output FILE, or a pipe")


@contextmanager
def _opened(output: Path | None) -> Iterator[BinaryIO]:
    if output is None:
        yield sys.stdout.buffer
        return
    try:
        file = output.open("wb")
    except OSError as error:
        raise ConfigError(f"--output {output}: {error.strerror}: give a file that can be written") from error
    with file:
        yield file
