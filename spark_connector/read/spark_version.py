"""Differences between PySpark versions: parts that a version lacks, errors that it cannot show."""

from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader

from rmqtools.errors import ConfigError
from spark_connector.options.option import GivenOptions
from spark_connector.worker.user_errors import text_first

LIMIT_OPTIONS: Final = (
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
)


def has_admission_control() -> bool:
    """Return whether PySpark gives a streaming source the begin of a batch (4.2 and newer)."""
    return find_spec("pyspark.sql.streaming.datasource") is not None


def refuse_limits(given: GivenOptions) -> None:
    """Refuse options of streams that PySpark 4.0 and 4.1 cannot serve.

    Raises:
        ConfigError: such an option was given.
    """
    for one in given:
        if one.option.name in LIMIT_OPTIONS:
            raise ConfigError(
                f"option {one.option.name!r} needs PySpark 4.2 or newer, this is {version('pyspark')}: a "
                "micro-batch has all waiting messages; leave the option out, or install pyspark>=4.2"
            )


def require_reported_offsets(what: str) -> None:
    """Refuse a function that needs the latest offsets of progress reports.

    Raises:
        ConfigError: PySpark is older than 4.2.
    """
    if not has_admission_control():
        raise ConfigError(
            f"{what} needs PySpark 4.2 or newer, this is {version('pyspark')}: its progress reports have no "
            "latest offsets; install pyspark>=4.2"
        )


class RefusedStreamReader(DataSourceStreamReader):  # type: ignore[misc]  # pyspark's types are not followed
    """Stands for a reader with unusable options: every call of Spark raises their error."""

    def __init__(self, error: ConfigError) -> None:
        self._error = error

    @text_first()
    def initialOffset(self) -> dict[str, Any]:
        """Raise the error."""
        raise self._error

    @text_first()
    def latestOffset(self, *_: Any) -> dict[str, Any]:
        """Raise the error."""
        raise self._error

    @text_first()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
        """Raise the error."""
        raise self._error

    def read(self, partition: Any) -> Any:
        """Never called: a reader without offsets has no partitions."""
        raise self._error
