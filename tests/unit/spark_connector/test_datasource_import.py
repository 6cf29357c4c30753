"""Imports of the data source: light, and without errors where packages are missing."""

import subprocess
import sys
from textwrap import dedent

import pytest

from rmqtools import Message, Producer, ProducerConfig


def run(program: str, *arguments: str) -> list[str]:
    """The lines that a program prints in an interpreter of its own."""
    command = [sys.executable, "-W", "error", "-c", dedent(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("module", ["spark_connector", "pyspark_rocketmq"])
def test_an_import_without_pyspark_names_the_extra(module: str) -> None:
    program = f"import sys; sys.modules['pyspark'] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert "ImportError: spark_connector needs PySpark" in done.stderr
    assert "pip install 'rmqtools[spark]'" in done.stderr.splitlines()[-1]


@pytest.mark.process
def test_the_discovered_module_imports_nothing_that_pyspark_does_not() -> None:
    program = """
        import sys
        import pyspark.sql.datasource
        before = set(sys.modules)
        import pyspark_rocketmq
        print(*sorted(set(sys.modules) - before), sep="\\n")
    """

    assert run(program) == [
        "pyspark_rocketmq",
        "spark_connector",
        "spark_connector.datasource",
        "spark_connector.worker",
        "spark_connector.worker.user_errors",
    ]


@pytest.mark.process
def test_the_discovered_module_offers_the_source_where_our_own_dependencies_are_missing() -> None:
    program = """
        import sys
        import pyspark.sql.datasource
        for name in ("rmqtools", "structlog", "lz4", "zstandard", "tenacity"):
            sys.modules[name] = None
        import pyspark_rocketmq
        print(pyspark_rocketmq.DefaultSource.name())
    """

    assert run(program) == ["rocketmq"]


READ = """
    import sys
    from spark_connector.options.batch_settings import batch_options
    from spark_connector.options.option_table import parse_options
    from spark_connector.read.batch_reader import RocketMQBatchReader

    reader = RocketMQBatchReader(batch_options(parse_options({"nameserver": sys.argv[1], "topic": "orders"})))
    tasks = reader.partitions()
    planned = {*sys.modules}
    print(sum(len(batch) for task in tasks for batch in reader.read(task)))
    print(*planned)
    print(*sys.modules)
"""


@pytest.mark.process
def test_a_process_of_a_read_imports_only_what_it_needs(cluster) -> None:
    """Spark starts one after the other, and a first action waits for each."""
    with Producer(ProducerConfig(name_server=cluster.name_server, group="g")) as producer:
        producer.send(Message("orders", b"body", keys=["k"], properties={"a": "b"}))

    rows, planned, imported = run(READ, cluster.name_server)

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
