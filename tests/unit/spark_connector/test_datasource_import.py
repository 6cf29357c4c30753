"""The data source where PySpark is missing."""

import subprocess
import sys

import pytest

from rmqtools import Message, Producer, ProducerConfig
from rmqtools.testing import FakeCluster


@pytest.mark.parametrize("module", ["spark_connector", "pyspark_rocketmq"])
def test_an_import_without_pyspark_names_the_extra(module: str) -> None:
    program = f"import sys; sys.modules['pyspark'] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert "ImportError: spark_connector needs PySpark" in done.stderr
    assert "pip install 'rmqtools[spark]'" in done.stderr.splitlines()[-1]


READ = """
import sys
from spark_connector.options.batch_settings import batch_options
from spark_connector.options.option_table import parse_options
from spark_connector.read.batch_reader import RocketMQBatchReader

reader = RocketMQBatchReader(batch_options(parse_options({"nameserver": sys.argv[1], "topic": "T"})))
tasks = reader.partitions()
planned = {*sys.modules}
print(sum(len(batch) for task in tasks for batch in reader.read(task)))
print(*planned)
print(*sys.modules)
"""


@pytest.mark.process
def test_a_process_of_a_read_imports_only_what_it_needs() -> None:
    """Spark starts one after the other, and a first action waits for each."""
    with FakeCluster() as cluster:
        cluster.create_topic("T", queues=1)
        with Producer(ProducerConfig(name_server=cluster.name_server, group="g")) as producer:
            producer.send(Message("T", b"body", keys=["k"], properties={"a": "b"}))
        command = [sys.executable, "-c", READ, cluster.name_server]
        done = subprocess.run(command, capture_output=True, text=True)
    rows, planned, imported = done.stdout.splitlines()

    assert rows == "1"
    assert "rmqtools.engine.admin.admin" in planned.split()
    assert {*planned.split()} & {"rmqtools.arrow", "pyarrow.compute"} == set()
    assert {*imported.split()} & {
        "pandas",
        "pyarrow.parquet",
        "rmqtools.engine.consumer.push_consumer",
        "rmqtools.engine.exact.mirror",
        "rmqtools.engine.producer.producer",
        "structlog",
    } == set()
