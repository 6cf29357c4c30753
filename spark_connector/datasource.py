"""The data source that Spark knows: its name, its schema, its readers and writers.

Spark imports this file to discover the source, in every session that uses an unknown format name. It must
load fast and never fail, so everything else is imported inside the methods.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

try:
    from pyspark.sql.datasource import DataSource
except ImportError as error:
    raise ImportError(
        f"spark_connector needs PySpark with Python data sources: pip install 'rmqtools[spark]' ({error})",
        name=error.name,
    ) from error

from spark_connector.worker.user_errors import is_spark_worker, text_first

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from spark_connector.options.stream_settings import StreamOptions
    from spark_connector.read.batch_reader import RocketMQBatchReader
    from spark_connector.write.stream_writer import RocketMQStreamWriter
    from spark_connector.write.writer import RocketMQBatchWriter

FORMAT = "rocketmq"


class RocketMQDataSource(DataSource):  # type: ignore[misc]  # pyspark's types are not followed
    """``format("rocketmq")``: the topics of an Apache RocketMQ cluster.

    The options are in :mod:`spark_connector.options.option_table`. Their names and values are checked here,
    so that errors appear at ``load()`` or ``save()``. The later calls check whether they suit a read or a
    write.
    """

    @text_first()
    def __init__(self, options: Any) -> None:
        from spark_connector.options.option_table import parse_options

        super().__init__(options)
        self._given = parse_options(dict(options))

    @classmethod
    def name(cls) -> str:
        """Return the name given to ``format``."""
        return FORMAT

    @text_first()
    def schema(self) -> "StructType":
        """Return the columns of a read row; check the options of reads: Spark calls this at ``load()``."""
        from spark_connector.options.read_settings import read_options
        from spark_connector.read.schema import read_schema

        return read_schema(read_options(self._given).columns)

    @text_first()
    def reader(self, schema: "StructType") -> "RocketMQBatchReader":
        """Return a batch reader of the columns of ``schema``, which may be fewer than the source has."""
        from spark_connector.options.batch_settings import batch_options
        from spark_connector.read.batch_reader import RocketMQBatchReader
        from spark_connector.read.schema import columns_of

        options = batch_options(self._given)
        read = replace(options.read, columns=columns_of(schema))
        return RocketMQBatchReader(replace(options, read=read))

    @text_first()
    def streamReader(self, schema: "StructType") -> Any:
        """Return a streaming reader; ``schema`` as for :meth:`reader`.

        In Spark's process unusable options give a reader whose calls raise their error: PySpark 4.0 to 4.3
        cannot show an error that is raised here, but an ``UnboundLocalError`` of its own.
        """
        from rmqtools.errors import ConfigError
        from spark_connector.read.spark_version import RefusedStreamReader, has_admission_control

        try:
            options = self._stream_options(schema)
        except ConfigError as error:
            if is_spark_worker():
                return RefusedStreamReader(error)
            raise
        if not has_admission_control():
            from spark_connector.read.early_stream_reader import RocketMQEarlyStreamReader

            return RocketMQEarlyStreamReader(options)
        from spark_connector.read.stream_reader import RocketMQStreamReader

        return RocketMQStreamReader(options)

    def _stream_options(self, schema: "StructType") -> "StreamOptions":
        from spark_connector.options.stream_settings import stream_options
        from spark_connector.read.schema import columns_of
        from spark_connector.read.spark_version import has_admission_control, refuse_limits

        if not has_admission_control():
            refuse_limits(self._given)
        options = stream_options(self._given)
        return replace(options, read=replace(options.read, columns=columns_of(schema)))

    @text_first()
    def writer(self, schema: "StructType", overwrite: bool) -> "RocketMQBatchWriter":
        """Return a batch writer for rows of ``schema``; Spark calls this at ``save()``, before any task."""
        from spark_connector.options.write_settings import write_options
        from spark_connector.write.exactly_once import check_batch_write, prepare
        from spark_connector.write.topics import check_topic
        from spark_connector.write.write_schema import for_schema
        from spark_connector.write.write_task import refuse_overwrite
        from spark_connector.write.writer import RocketMQBatchWriter

        options = write_options(self._given)
        refuse_overwrite(overwrite)
        check_batch_write(options)
        options = for_schema(options, schema)
        check_topic(options)
        prepare(options)
        return RocketMQBatchWriter(options)

    @text_first()
    def streamWriter(self, schema: "StructType", overwrite: bool) -> "RocketMQStreamWriter":
        """Return a streaming writer for rows of ``schema``; output mode ``complete`` appends all rows."""
        from spark_connector.options.write_settings import write_options
        from spark_connector.write.exactly_once import prepare
        from spark_connector.write.stream_writer import RocketMQStreamWriter
        from spark_connector.write.topics import check_topic
        from spark_connector.write.write_schema import for_schema

        options = for_schema(write_options(self._given), schema)
        check_topic(options)
        prepare(options)
        return RocketMQStreamWriter(options, schema)
