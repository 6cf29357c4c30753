"""What Spark asks of a source: its name, its schema, a reader, a writer.

Spark imports this file to discover the source, in every session that uses an unknown format name:
it must be light and must not fail, so the rest is imported inside the methods.
"""

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from spark_connector.batch_reader import RocketMQBatchReader
    from spark_connector.stream_reader import RocketMQStreamReader
    from spark_connector.stream_writer import RocketMQStreamWriter
    from spark_connector.writer import RocketMQBatchWriter

FORMAT = "rocketmq"


class RocketMQDataSource(DataSource):  # type: ignore[misc]  # pyspark's types are not followed
    """``format("rocketmq")``: the topics of an Apache RocketMQ cluster.

    The options are in :mod:`spark_connector.options`. Their names and values are checked here, so that
    errors show at ``load()`` or ``save()``; whether they suit a read or a write is known a call later.
    """

    def __init__(self, options: Any) -> None:
        from spark_connector.options import parse_options

        super().__init__(options)
        self._given = parse_options(dict(options))

    @classmethod
    def name(cls) -> str:
        """The name given to ``format``."""
        return FORMAT

    def schema(self) -> "StructType":
        """The columns of a read row. Checks what a read needs: Spark calls this at ``load()``."""
        from spark_connector.read_role import read_options
        from spark_connector.schema import read_schema

        return read_schema(read_options(self._given))

    def reader(self, schema: "StructType") -> "RocketMQBatchReader":
        """A batch reader; ``schema`` is the source's own, or the user's, which then must equal it."""
        from spark_connector.batch_reader import RocketMQBatchReader
        from spark_connector.batch_role import batch_options
        from spark_connector.schema import check_read_schema, read_schema

        options = batch_options(self._given)
        check_read_schema(schema, read_schema(options.read))
        return RocketMQBatchReader(options)

    def streamReader(self, schema: "StructType") -> "RocketMQStreamReader":
        """A streaming reader; ``schema`` as for :meth:`reader`."""
        from spark_connector.schema import check_read_schema, read_schema
        from spark_connector.stream_reader import RocketMQStreamReader
        from spark_connector.stream_role import stream_options

        options = stream_options(self._given)
        check_read_schema(schema, read_schema(options.read))
        return RocketMQStreamReader(options)

    def writer(self, schema: "StructType", overwrite: bool) -> "RocketMQBatchWriter":
        """A batch writer for rows of ``schema``; Spark calls this at ``save()``, before any task."""
        from spark_connector.write_role import write_options
        from spark_connector.write_schema import for_schema
        from spark_connector.write_task import refuse_overwrite
        from spark_connector.writer import RocketMQBatchWriter

        options = write_options(self._given)
        refuse_overwrite(overwrite)
        return RocketMQBatchWriter(for_schema(options, schema))

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "RocketMQStreamWriter":
        """A streaming writer for rows of ``schema``; ``overwrite`` (output mode complete) appends all."""
        from spark_connector.stream_writer import RocketMQStreamWriter
        from spark_connector.write_role import write_options
        from spark_connector.write_schema import for_schema

        return RocketMQStreamWriter(for_schema(write_options(self._given), schema))
