"""What Spark imports to find the source is light and does not fail."""

import subprocess
import sys
from textwrap import dedent

import pytest


def run(program: str) -> str:
    """The output of a program in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", dedent(program)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_discovered_module_offers_the_source():
    import pyspark_rocketmq

    assert pyspark_rocketmq.DefaultSource.name() == "rocketmq"


@pytest.mark.process
def test_importing_it_brings_in_nothing_pyspark_does_not():
    program = """
        import sys
        import pyspark.sql.datasource
        before = set(sys.modules)
        import pyspark_rocketmq
        print(*sorted(set(sys.modules) - before))
    """

    assert run(program).split() == [
        "pyspark_rocketmq",
        "spark_connector",
        "spark_connector.datasource",
        "spark_connector.worker",
        "spark_connector.worker.user_errors",
    ]


@pytest.mark.process
def test_importing_it_succeeds_where_our_own_dependencies_are_missing():
    program = """
        import sys
        import pyspark.sql.datasource
        for name in ("rmqtools", "structlog", "lz4", "zstandard", "tenacity"):
            sys.modules[name] = None
        import pyspark_rocketmq
        print(pyspark_rocketmq.DefaultSource.name())
    """

    assert run(program) == "rocketmq"
