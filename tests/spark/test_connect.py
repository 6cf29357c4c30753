"""Spark Connect: a client, and a server in a process of its own."""

import sys
from importlib.util import find_spec

import pytest

from tests.spark.programs import READ_AND_WRITE, WRITTEN, program
from tests.support.spark_processes import await_port, daemon, environment, free_port, run

pytestmark = [
    pytest.mark.slow,
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


BATCHES = """
from concurrent.futures import ThreadPoolExecutor

def write(frame, number):
    def save():
        rows = frame.selectExpr("'same' AS body")
        rows.write.format("rocketmq").options(**target, stampId=stamp_id.format(number)).mode("append").save()

    try:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(save).result()
    except Exception as error:
        errors.write_text(str(error))

for name, stamp_id in (("fixed", "orders"), ("numbered", "orders-{}")):
    errors = folder / name
    stream = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "lines"))
    writer = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / f"of-{name}"))
    writer.trigger(availableNow=True).start().awaitTermination()
    print(spark.read.format("rocketmq").options(**source).load().count())
    print(" ".join(errors.read_text().split()) if errors.exists() else "")
"""


def test_each_micro_batch_of_foreach_batch_is_stored_once_if_its_number_is_in_its_id(
    server, tmp_path, local_cluster, make_topic
):
    (tmp_path / "lines").mkdir()
    for number in range(3):
        (tmp_path / "lines" / f"{number}.txt").write_text("row\n" * 10)
    text = program(
        "from pathlib import Path",
        "spark, folder = builder.remote(sys.argv[1]).getOrCreate(), Path(sys.argv[4])",
        "source = {'nameServer': sys.argv[2], 'topic': sys.argv[3]}",
        "target = {**source, 'delivery': 'exactlyOnce'}",
        BATCHES,
    )

    printed = run(
        [sys.executable, "-c", text, server, local_cluster.name_server, make_topic(), str(tmp_path)],
        environment(),
    )

    none, refusal, stored, error = printed
    assert none == "0"
    assert "put it at the end of option 'stampId'" in refusal
    assert (stored, error) == ("30", "")
