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
