"""Stamped rows of a Spark job that is killed and run again, consumed once by members that are killed."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rmqtools.once import SqlStore
from tests.support.cluster_scene import wait_until
from tests.support.listening import new_group
from tests.support.once_member import EFFECTS, open_database

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).resolve().parents[2]
ROWS, KILLS = 100_000, 8


@contextmanager
def started(module: str, *arguments: str):
    """A program with all that it starts; killed at the end of the block."""
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-m", module, *arguments]
    process: Any = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()


def write_killed_and_again(name_server: str, topic: str, folder: Path, stored: Callable[[], int]) -> None:
    """Write all rows, after a first run that is killed when a third of them is written."""
    options = {"nameServer": name_server, "topic": topic, "stamp": "true", "stampId": "w", "idColumn": "body"}
    for run in ("killed", "whole"):
        (folder / run).mkdir()
        arguments = [
            json.dumps(options),
            "--rows",
            str(ROWS),
            "--row-bytes",
            "20",
            "--folder",
            str(folder / run),
        ]
        if run == "whole":
            for mark in ("go-1", "go-2"):
                (folder / run / mark).touch()
        with started("tests.spark.paced_write", *arguments) as job:
            if run == "killed":
                wait_until(lambda: stored() > ROWS // 3, seconds=300)
            else:
                assert "saved\n" in job.stdout


def test_rows_of_a_killed_job_have_their_effect_once_while_members_are_killed(
    local_cluster, admin, make_topic, tmp_path
):
    topic, group, dice = make_topic(), new_group(), random.Random(21)
    engine = open_database(tmp_path / "effects.db")
    EFFECTS.create(engine)
    SqlStore(engine, group=group).create_table()

    def stored() -> int:
        return sum(admin.max_offset(queue) for queue in admin.fetch_subscribe_queues(topic))

    write_killed_and_again(local_cluster.name_server, topic, tmp_path, stored)
    arguments = (local_cluster.name_server, group, topic, str(tmp_path / "effects.db"))

    def count() -> int:
        with engine.connect() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(EFFECTS)).scalar_one()

    def is_through() -> bool:
        return all(each.lag == 0 for each in admin.fetch_group(group).progress.values())

    for _ in range(KILLS):
        wanted = count() + dice.randrange(ROWS // KILLS // 2)
        with ExitStack() as both:
            for _ in range(2):
                both.enter_context(started("tests.support.once_member", *arguments))
            wait_until(partial(lambda least: count() > least, min(wanted, ROWS - 1)), seconds=120)
    with ExitStack() as both:
        for _ in range(2):
            both.enter_context(started("tests.support.once_member", *arguments))
        wait_until(lambda: count() >= ROWS and is_through(), seconds=600)
        with engine.connect() as connection:
            bodies = list(connection.scalars(sa.select(EFFECTS.c.body)))
    engine.dispose()

    print(f"{stored()} messages stored, {len(bodies)} effects")
    assert stored() > ROWS
    assert len(bodies) == len(set(bodies)) == ROWS
