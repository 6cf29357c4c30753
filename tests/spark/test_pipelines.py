"""Declarative Pipelines of PySpark 4.1 and newer: a topic as the source and as the sink."""

import shutil
from importlib.util import find_spec

import pytest

from rmqtools import Message
from tests.support.reading import await_readable
from tests.support.spark_processes import ROOT, SPARK_HOME, environment, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("grpc") is None, reason="pip install pyspark[pipelines]"),
]


@pytest.fixture
def pipeline(tmp_path):
    """The example, with its storage in a folder of the test."""
    folder = tmp_path / "pipeline"
    shutil.copytree(ROOT / "examples" / "spark_pipeline", folder)
    spec = folder / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("/tmp/example-pipeline", str(tmp_path / "storage")))
    return folder


def test_each_run_of_a_pipeline_goes_on_where_the_last_one_ended(
    pipeline, local_cluster, make_topic, producer, admin, read_rows
):
    source, target = make_topic(), make_topic()
    variables = {"NAMESRV_ADDR": local_cluster.name_server, "TOPIC": source, "TARGET": target}
    command = [str(SPARK_HOME / "bin" / "spark-pipelines"), "run", "--spec", "spark-pipeline.yml"]
    settings = ["--conf", "spark.ui.enabled=false", "--remote", "local[2]"]

    def send_and_run(*numbers):
        messages = [
            Message(source, b"order %d" % number, tags="paid" if number % 2 else "new") for number in numbers
        ]
        await_readable(admin, producer.send_many(messages))
        run([*command, *settings], environment(SPARK_HOME=str(SPARK_HOME), **variables), cwd=pipeline)

    send_and_run(1, 2, 3)
    send_and_run(4, 5)

    assert sorted(row.body for row in read_rows(topic=target)) == [b"order 1", b"order 3", b"order 5"]
