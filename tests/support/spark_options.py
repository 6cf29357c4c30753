"""Options of Spark as tests give them, for each use: name server h:1 and, of reads, topic T unless given.

They are ``Any`` for mypy: a test looks into parts that are None without the options that it gives.
"""

from typing import Any

from spark_connector.options.batch_settings import batch_options
from spark_connector.options.option import GivenOptions
from spark_connector.options.option_table import parse_options
from spark_connector.options.read_settings import read_options
from spark_connector.options.stream_settings import stream_options
from spark_connector.options.write_settings import write_options


def write_of(**given: Any) -> Any:
    return write_options(_parsed(given))


def read_of(**given: Any) -> Any:
    return read_options(_parsed({"topic": "T"} | given))


def batch_of(**given: Any) -> Any:
    return batch_options(_parsed({"topic": "T"} | given))


def stream_of(**given: Any) -> Any:
    return stream_options(_parsed({"topic": "T"} | given))


def _parsed(given: dict[str, Any]) -> GivenOptions:
    """Parse options, without those that are None."""
    options = {"nameServer": "h:1"} | given
    return parse_options({name: str(value) for name, value in options.items() if value is not None})
