"""Every Python block and command of the documentation runs. All pages but the tutorial share a cluster."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from rmqtools import Admin, ClientConfig
from tests.docs.blocks import ROOT, blocks_of, pages
from tests.docs.pages import (
    SLOW,
    WITH_FRAMEWORKS,
    WITH_JARS,
    WITH_PACKAGES,
    WITH_PYTEST,
    WITH_TIMER_WHEEL,
)
from tests.support.patience import PROGRAM_PATIENCE
from tests.support.resting import RestingCluster

pytestmark = pytest.mark.broker

TOPIC = "Orders"
RUN = [
    pytest.param(page, marks=[pytest.mark.slow, pytest.mark.spark] if page in SLOW else [])
    for page in pages()
    if blocks_of(page)
    and page
    not in {*WITH_PYTEST, *WITH_FRAMEWORKS, *WITH_PACKAGES, *WITH_JARS, *WITH_TIMER_WHEEL, "tutorial.md"}
]


def environment(folder: Path) -> dict[str, str]:
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("NAMESRV", "PYTEST", "RMQTOOLS"))
    }
    return kept | {
        "PYTHONPATH": str(ROOT),
        "RMQTOOLS_CONFIG": str(folder / "config.toml"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }


def run(folder: Path, *arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(folder) | variables,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PROGRAM_PATIENCE,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


@pytest.fixture(scope="module")
def orders(admin):
    """The topic of all pages."""
    admin.create_topic(TOPIC, read_queue_nums=4, write_queue_nums=4)


@pytest.mark.parametrize("page", RUN)
def test_the_blocks_of_a_page_run(page, local_cluster, orders, tmp_path):
    run(
        tmp_path,
        "-m",
        "tests.docs.run_page",
        page,
        local_cluster.name_server,
        NAMESRV_ADDR=local_cluster.name_server,
    )


@pytest.mark.slow  # it starts a cluster
@pytest.mark.parametrize("page", sorted(WITH_TIMER_WHEEL))
def test_the_blocks_of_a_page_that_needs_a_timer_wheel_run(page, tmp_path):
    with RestingCluster(brokers=1, timer_wheel=True) as cluster:
        with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
            admin.create_topic(TOPIC, read_queue_nums=4, write_queue_nums=4)
        run(tmp_path, "-m", "tests.docs.run_page", page, cluster.name_server)


@pytest.mark.slow  # it downloads them
@pytest.mark.parametrize("page", WITH_PACKAGES)
def test_the_blocks_of_a_page_with_packages_of_its_own_run(page, local_cluster, orders, tmp_path):
    packages = tmp_path / "packages"
    run(tmp_path, "-m", "pip", "install", "--quiet", "--target", str(packages), *WITH_PACKAGES[page])

    run(
        tmp_path,
        *("-m", "tests.docs.run_page", page, local_cluster.name_server),
        PYTHONPATH=f"{ROOT}:{packages}",
    )


@pytest.mark.parametrize("page", sorted(WITH_PYTEST))
def test_the_test_files_of_a_page_pass(page, tmp_path):
    python = [block for block in blocks_of(page) if block.language == "python"]
    for number, block in enumerate(python):
        (tmp_path / f"test_block_{number}.py").write_text(block.text)

    assert f"{len(python)} passed" in run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider")


@pytest.mark.slow
@pytest.mark.spark
def test_the_tutorial_can_be_followed_to_its_end(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = {"RMQTOOLS_CLUSTER_DIR": str(tmp_path / "cluster")}
    try:
        printed = run(tmp_path, "-m", "tests.docs.run_page", "tutorial.md", f"127.0.0.1:{port}", **folder)
    finally:
        run(tmp_path, str(Path(sys.executable).parent / "rmqtools"), "cluster", "down", **folder)

    assert "1000 orders booked" in printed
    (rows,) = re.findall(r"(\d+) rows in files", printed)
    assert 1000 <= int(rows) <= 1002, printed  # brokers show the two rows just written a moment later
