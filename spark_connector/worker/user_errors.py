"""Brings the text of an error to the first line of the exception that Spark shows.

Spark shows the report of its Python process: by default a traceback, with the error's text in the last line.
If ``SPARK_HIDE_TRACEBACK`` is in its environment, the process reports only the text. The process ends after
the report, so the variable affects no other code.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_HIDE: Final = "SPARK_HIDE_TRACEBACK"


@contextmanager
def text_first() -> Iterator[None]:
    """Report errors that users can correct without a traceback. Use as block or decorator ``@text_first()``.

    Defects (``ProtocolError`` and errors other than ``RocketMQError``) keep their traceback. Outside Spark's
    Python processes this does nothing.
    """
    try:
        yield
    except Exception as error:
        if is_spark_worker() and _is_for_users(error):
            os.environ[_HIDE] = "1"
        raise


def _is_for_users(error: Exception) -> bool:
    from rmqtools.errors import (  # discovery imports this file, so it must load fast
        ProtocolError,
        RocketMQError,
    )

    return isinstance(error, RocketMQError) and not isinstance(error, ProtocolError)


def is_spark_worker() -> bool:
    """Return whether Spark started this process to run Python code of a data source."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")
