"""``rmqtools spark``: whether Spark on this machine finds and runs the data source."""

import subprocess
import sys
from importlib.util import find_spec
from typing import Annotated

import typer

from rmqtools.cli.exit_code import ExitCode
from rmqtools.errors import ConfigError

app = typer.Typer(no_args_is_help=True, help="The data source for Spark.")

Server = Annotated[
    str | None,
    typer.Option("--name-server", "-n", metavar="HOST:PORT", help="Read a message from this cluster."),
]
Topic = Annotated[
    str | None, typer.Option("--topic", "-t", metavar="TOPIC", help="The topic to read a message of.")
]


@app.command()
def check(name_server: Server = None, topic: Topic = None) -> None:
    """Print what Spark's discovery sees; exit code 1 if something is wrong. See spark_connector.doctor."""
    given = {"--name-server": name_server, "--topic": topic}
    _doctor(*(part for name, value in given.items() if value is not None for part in (name, value)))


@app.command(name="compile")
def compile_() -> None:
    """Compile PySpark once, in its archive, instead of in every Python process that Spark starts."""
    _doctor("--compile")


def _doctor(*arguments: str) -> None:
    """Run the doctor, and end with its exit code.

    Raises:
        ConfigError: PySpark is not there.
    """
    if find_spec("pyspark") is None:
        raise ConfigError(
            "PySpark is not installed beside this Python: pip install pyspark, or '.[spark]' in a checkout"
        )
    done = subprocess.run([sys.executable, "-m", "spark_connector.doctor", *arguments], check=False)
    raise typer.Exit(ExitCode.NO if done.returncode else ExitCode.DONE)
