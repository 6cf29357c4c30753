"""The reader of batches, as Spark sees it."""

from pyspark.sql.datasource import DataSourceReader

from spark_connector.read.batch_reader import RocketMQBatchReader


def test_it_takes_no_pushed_filters():
    """Spark 4.3.0 would keep them for the frame's next query: docs/decisions/0036."""
    assert RocketMQBatchReader.pushFilters is DataSourceReader.pushFilters
