"""Errors for users are reported without a traceback, by Spark's own processes only."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rmqtools.errors import ConfigError
from spark_connector.worker.user_errors import text_first

ROOT = Path(__file__).resolve().parents[4]


def test_an_error_in_any_other_process_changes_nothing():
    with pytest.raises(ConfigError), text_first():
        raise ConfigError("wrong")

    assert "SPARK_HIDE_TRACEBACK" not in os.environ


@pytest.mark.process
@pytest.mark.parametrize(
    ("error", "is_hidden"),
    [
        pytest.param("errors.ConfigError('wrong')", True, id="of-a-user"),
        pytest.param("errors.ProtocolError('odd')", False, id="of-the-peer"),
        pytest.param("KeyError('x')", False, id="a-defect"),
    ],
)
def test_spark_s_processes_report_the_text_alone_but_for_defects(tmp_path, error, is_hidden):
    package = tmp_path / "pyspark"
    package.mkdir()
    (package / "daemon.py").write_text(
        "import os\n"
        "from rmqtools import errors\n"
        "from spark_connector.worker.user_errors import text_first\n"
        "try:\n"
        "    with text_first():\n"
        f"        raise {error}\n"
        "except Exception:\n"
        "    print('SPARK_HIDE_TRACEBACK' in os.environ)\n"
    )
    (package / "__init__.py").write_text("")
    (tmp_path / "spark_connector").mkdir()
    (tmp_path / "spark_connector" / "__init__.py").write_text(
        f"__path__ = [{str(ROOT / 'spark_connector')!r}]\n"  # without importing PySpark, scripted here
    )

    printed = subprocess.run(
        [sys.executable, "-m", "pyspark.daemon"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert printed == f"{is_hidden}\n"
