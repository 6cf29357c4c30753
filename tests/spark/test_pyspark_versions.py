"""The smoke set (tests/spark/spark_smoke.py) on every supported PySpark, in environments of their own."""

import json
import sys

import pytest

from rmqtools import Message
from tests.spark.spark_smoke import FOUND
from tests.support.pyspark_versions import ROOT, python_with
from tests.support.reading import await_readable
from tests.support.spark_processes import environment, run

_SECONDS = 900
_OLD = ("4.0", "4.1")  # without limits of a micro-batch


@pytest.mark.timeout(3 * _SECONDS)
@pytest.mark.slow
@pytest.mark.parametrize("series", ["4.0", "4.1", "4.2", "4.3"])
def test_batches_and_streams_are_exact_on_every_supported_version(series, local_cluster, tmp_path):
    python = sys.executable if series == "4.3" else python_with(series)
    command = [python, "-m", "tests.spark.spark_smoke", local_cluster.name_server, str(tmp_path)]

    *_, printed = run(command, environment(PYSPARK_PYTHON=python), cwd=ROOT)

    found = json.loads(printed)
    assert found.pop("version").startswith(series)
    limits = found.pop("limits")
    assert found == FOUND
    if series in _OLD:
        assert (
            "option 'maxOffsetsPerTrigger' needs PySpark 4.2 or newer, this is " + series
            in limits.splitlines()[0]
        )
    else:
        assert limits == "8 rows"


@pytest.mark.timeout(3 * _SECONDS)
@pytest.mark.slow
def test_spark_3_5_reads_a_topic_by_the_recipe(local_cluster, make_topic, producer, admin):
    """The recipe of examples/spark35_read.py, with rows that have everything and rows that have little."""
    topic = make_topic(queues=2)
    messages = [
        Message(topic, b"x" * 100, tags="t", keys=[f"k{number}"], properties={"имя": "значение"})
        for number in range(500)
    ]
    await_readable(admin, producer.send_many([*messages, Message(topic, b"\x00")]))
    program = (
        "import pyspark, sys; from examples.spark35_read import read_topic; "
        "from pyspark.sql import SparkSession; "
        "spark = SparkSession.builder.master('local[2]').config('spark.ui.enabled', 'false').getOrCreate(); "
        "frame = read_topic(spark, *sys.argv[1:]).cache(); "
        "full = frame.filter(\"tags = 't' and properties['имя'] = 'значение' and length(body) = 100\"); "
        "print(pyspark.__version__, frame.count(), full.count(), frame.filter('tags is null').count(), "
        "frame.select('keys').distinct().count(), frame.filter('storeTimestamp > \"2020-01-01\"').count())"
    )
    python = python_with("3.5")
    command = [python, "-c", program, local_cluster.name_server, topic]

    *_, printed = run(command, environment(PYSPARK_PYTHON=python), cwd=ROOT)

    version, *counts = printed.split()
    assert version.startswith("3.5.")
    assert counts == ["501", "500", "1", "501", "501"]
