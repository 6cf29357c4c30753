"""The data source where PySpark is missing."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["spark_connector", "pyspark_rocketmq"])
def test_an_import_without_pyspark_names_the_extra(module: str) -> None:
    program = f"import sys; sys.modules['pyspark'] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert "ImportError: spark_connector needs PySpark" in done.stderr
    assert "pip install 'rmqtools[spark]'" in done.stderr.splitlines()[-1]


@pytest.mark.process
@pytest.mark.parametrize(
    ("step", "unwanted"),
    [
        ("from rmqtools.aio import Admin", {"rmqtools.arrow", "pyarrow.compute"}),
        ("import rmqtools.arrow; from rmqtools.aio import Client", {"rmqtools.engine.admin.admin"}),
    ],
    ids=["plan", "read"],
)
def test_a_process_of_a_read_imports_only_what_it_needs(step: str, unwanted: set[str]) -> None:
    """Spark starts one after the other, and a first action waits for each."""
    program = f"import sys, spark_connector.read.batch_reader; {step}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    imported = {*done.stdout.split()}

    assert imported > {"rmqtools.engine.connection.client"}
    assert (
        imported
        & {
            *unwanted,
            "pandas",
            "pyarrow.parquet",
            "rmqtools.engine.consumer.push_consumer",
            "rmqtools.engine.exact.mirror",
            "rmqtools.engine.producer.producer",
            "structlog",
            "urllib.request",
        }
        == set()
    )
