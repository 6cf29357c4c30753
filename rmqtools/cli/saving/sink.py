"""Destination of ``consume``: standard output or a file; as text, JSON lines, hex or Parquet."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Self

from rmqtools import MessageExt
from rmqtools.cli.output_messages import formatter
from rmqtools.errors import ConfigError

if TYPE_CHECKING:
    from rmqtools.arrow import ParquetFile

PARQUET = "parquet"
Sink = Callable[[Sequence[MessageExt]], None]


@contextmanager
def message_sink(form: str, own: str | None, output: Path | None, *, raw: bool = False) -> Iterator[Sink]:
    """Open the place, and yield a function that writes messages to it.

    Args:
        form: ``text``, ``json``, ``hex`` or ``parquet``.
        own: a format of the user's own, in place of ``form``.
        raw: write what senders decide to a terminal as it is.
        output: a file; None, or ``-``: standard output. The file's old content stays until the first messages
            are written, and after an error before that.

    Raises:
        ConfigError: an unknown field of ``own``, a file that cannot be written, or Parquet on a terminal.
    """
    output = None if str(output) == "-" else output
    if form == PARQUET and own is None:
        _check_parquet(output)
        with _opened(output) as place, _ParquetSink(place) as sink:
            yield sink.write
        return
    write = formatter(form, own, for_terminal=output is None and not raw and sys.stdout.isatty())
    with _opened(output) as place:

        def put(messages: Sequence[MessageExt]) -> None:
            out = place.begin()
            out.write(b"".join(map(write, messages)))
            out.flush()

        yield put
        place.begin()


class _Place:
    """Destination of bytes; a file keeps its old content until :meth:`begin`."""

    def __init__(self, file: BinaryIO, *, is_file: bool) -> None:
        self._file = file
        self._is_file = is_file
        self.has_begun = False

    def begin(self) -> BinaryIO:
        """Remove the old content, the first time; return the file."""
        if self._is_file and not self.has_begun:
            self._file.truncate(0)
        self.has_begun = True
        return self._file


class _ParquetSink:
    """A Parquet file that begins with the first messages."""

    def __init__(self, place: _Place) -> None:
        self._place = place
        self._file: ParquetFile | None = None

    def write(self, messages: Sequence[MessageExt]) -> None:
        """Add messages."""
        if self._file is None:
            from rmqtools.arrow import ParquetFile  # optional dependency

            self._file = ParquetFile(self._place.begin())
        self._file.write(messages)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the file; without messages it has no rows, unless there was an error."""
        if error is None:
            self.write(())
        if self._file is not None:
            self._file.close()


def _check_parquet(output: Path | None) -> None:
    if find_spec("pyarrow") is None or find_spec("numpy") is None:
        raise ConfigError("--format parquet needs pyarrow: pip install 'rmqtools[arrow]'")
    if output is None and sys.stdout.isatty():
        raise ConfigError("--format parquet is no text for a terminal: give --output FILE, or a pipe")


@contextmanager
def _opened(output: Path | None) -> Iterator[_Place]:
    if output is None:
        yield _Place(sys.stdout.buffer, is_file=False)
        return
    is_new = not output.exists()
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise ConfigError(f"--output {output}: {error.strerror}: give a file that can be written") from error
    with os.fdopen(descriptor, "wb") as file:
        place = _Place(file, is_file=output.is_file())  # pipes and devices have no old content
        try:
            yield place
        finally:
            if is_new and not place.has_begun:
                output.unlink(missing_ok=True)
