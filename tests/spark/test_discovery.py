"""How a session comes to know the format: by itself, or by register beside a broken package."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import spark_connector
from tests.support.spark_processes import ROOT, environment, run

PROGRAM = """
import sys
from pyspark.sql import SparkSession
import spark_connector

spark = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
)

def count():
    options = {"nameServer": sys.argv[1], "topic": sys.argv[2]}
    return spark.read.format("rocketmq").options(**options).load().count()

try:
    print("found:", count())
except Exception as error:
    print("not found:", "DATA_SOURCE_NOT_FOUND" in str(error))
spark_connector.register(spark)
spark_connector.register(spark)
print("registered:", count())
"""


def test_the_format_is_known_with_nothing_registered(spark, make_topic, read):
    assert read(topic=make_topic()).count() == 0


def test_names_are_known_in_any_case_and_in_a_new_session(spark, local_cluster, make_topic):
    options = {"NAMESERVER": local_cluster.name_server, "Topic": make_topic()}

    assert spark.newSession().read.format("RocketMQ").options(**options).load().count() == 0


@pytest.mark.slow  # every other test finds the source by itself
def test_a_thread_that_registers_can_write(spark, make_topic, read, write):
    topic = make_topic()

    def register_and_write():
        spark_connector.register(spark)
        write([("a",), ("b",)], "body string", topic=topic)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(register_and_write).result()

    assert read(topic=topic).count() == 2


@pytest.mark.slow  # a Spark of its own
def test_register_works_beside_a_broken_neighbour(tmp_path, local_cluster, make_topic, write):
    topic = make_topic()
    write([("a",), ("b",)], "body string", topic=topic)
    (tmp_path / "pyspark_zzz.py").write_text("raise ImportError('broken on purpose')")
    command = [sys.executable, "-c", PROGRAM, local_cluster.name_server, topic]

    printed = run(command, environment(PYTHONPATH=f"{tmp_path}:{ROOT}"), cwd=tmp_path)

    assert printed == ["not found: True", "registered: 2"]
