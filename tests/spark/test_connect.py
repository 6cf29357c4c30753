"""Spark Connect: a client, and a server in a process of its own."""

import sys
from importlib.util import find_spec

import pytest

from tests.spark.programs import READ_AND_WRITE, WRITTEN, program
from tests.support.spark_processes import await_port, daemon, environment, free_port, run

pytestmark = [
    *(pytest.mark.spark, pytest.mark.broker, pytest.mark.slow),
    pytest.mark.skipif(find_spec("grpc") is None, reason="pip install pyspark[connect]"),
]


@pytest.fixture
def server(tmp_path):
    """The URL of a Connect server."""
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
    }
    arguments = [word for setting in settings.items() for word in ("--conf", "=".join(setting))]
    server = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]")
    with daemon(
        tmp_path, "connect", "org.apache.spark.deploy.SparkSubmit", *server, *arguments, "spark-internal"
    ):
        await_port(port)
        yield f"sc://127.0.0.1:{port}"


def test_a_client_of_spark_connect_reads_writes_streams_and_registers(
    server, tmp_path, local_cluster, make_topic
):
    text = program(
        "spark = builder.remote(sys.argv[1]).getOrCreate()",
        "import spark_connector",
        "print(type(spark).__module__)",
        READ_AND_WRITE,
        "stream = spark.readStream.format('rocketmq').options(**options, startingOffsets='earliest').load()",
        "target = {**options, 'topic': sys.argv[4], 'checkpointLocation': sys.argv[5]}",
        "writer = stream.select('body', 'tags').writeStream.format('rocketmq').options(**target)",
        "writer.trigger(availableNow=True).start().awaitTermination()",
        "print(spark.read.format('rocketmq').options(**{**options, 'topic': sys.argv[4]}).load().count())",
        "spark_connector.register(spark)",
        "print(spark.read.format('rocketmq').options(**options).load().count())",
        "try: spark_connector.reader_ids(spark)",
        "except ValueError as error: print(error)",
        "spark_connector.refresh(spark, 'v')",
        "spark_connector.refresh(spark, 'v', options)",
        "print(spark.table('v').count())",
    )
    topics = make_topic(), make_topic()

    module, *printed, streamed, count, refusal, statement, again = run(
        [
            *(sys.executable, "-c", text, server, local_cluster.name_server, *topics),
            str(tmp_path / "checkpoint"),
        ],
        environment(),
    )

    assert module == "pyspark.sql.connect.session"
    assert (printed, streamed, count) == (WRITTEN, "2000", "2000")
    assert "give option 'readerIds' yourself" in refusal
    assert statement.startswith("CREATE OR REPLACE TEMPORARY VIEW `v` USING rocketmq")
    assert again == "2000"
