"""Events of Python workers as rows of SQL: Spark's worker logging, PySpark 4.1 and newer."""

import pytest

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.testing.fake import FakeCluster
from tests.docs.blocks import blocks_of

(RECIPE,) = (block.text for block in blocks_of("spark-recipes.md") if "python_worker_logs" in block.text)


@pytest.fixture
def warnings(spark):
    """``warnings("bad_row")``: logger and text of each warning with that event, by the page's recipe."""
    names = {"spark": spark}
    exec(RECIPE, names)

    def found(event):
        chosen = names["events"].where(f"level = 'WARNING' AND msg LIKE '{event} %'")
        return [tuple(row) for row in chosen.select("logger", "msg").collect()]

    yield found
    spark.conf.unset("spark.sql.pyspark.worker.logging.enabled")


def test_rows_that_needed_another_attempt_are_readable_in_sql(warnings, write):
    with FakeCluster() as cluster:
        cluster.create_topic("Busy", queues=2)
        cluster.fault(code=RequestCode.SEND_BATCH_MESSAGE, answer=ResponseCode.SYSTEM_BUSY)
        rows = [(b"%d" % number,) for number in range(10)]

        write(rows, "body binary", topic="Busy", nameServer=cluster.name_server)

    ((logger, text),) = warnings("rows_retried")
    assert logger == "spark_connector.write.write_task"
    assert "partition=0" in text
    assert "acked=10" in text
    assert "retried=0" not in text
