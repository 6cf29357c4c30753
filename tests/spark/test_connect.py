"""Spark Connect: a client, and a server that it starts."""

import sys
from importlib.util import find_spec

import pytest

from tests.spark.programs import READ_AND_WRITE, WRITTEN, program
from tests.support.spark_processes import environment, run

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.timeout(600), pytest.mark.slow]


@pytest.mark.skipif(find_spec("grpc") is None, reason="pip install pyspark[connect]")
def test_spark_connect_reads_and_writes_and_takes_a_registration(local_cluster, make_topic):
    text = program(
        "spark = builder.remote(sys.argv[1]).getOrCreate()",
        "import spark_connector",
        "print(type(spark).__module__)",
        READ_AND_WRITE,
        "spark_connector.register(spark)",
        "print(spark.read.format('rocketmq').options(**options).load().count())",
        "try: spark_connector.reader_ids(spark)",
        "except ValueError as error: print(error)",
        "spark_connector.refresh(spark, 'v')",
        "spark_connector.refresh(spark, 'v', options)",
        "print(spark.table('v').count())",
    )
    arguments = ["local[2]", local_cluster.name_server, make_topic()]

    module, *printed, count, refusal, statement, again = run(
        [sys.executable, "-c", text, *arguments], environment()
    )

    assert module == "pyspark.sql.connect.session"
    assert (printed, count) == (WRITTEN, "2000")
    assert "give option 'readerIds' yourself" in refusal
    assert statement.startswith("CREATE OR REPLACE TEMPORARY VIEW `v` USING rocketmq")
    assert again == "2000"
