"""``rmqtools exporter`` as a process."""

import os
import re
import signal
import subprocess
import sys
import urllib.request

import pytest

from rmqtools.errors import ConfigError
from tests.support.cluster_scene import wait_until
from tests.support.patience import PATIENCE


@pytest.mark.process
def test_prometheus_gets_the_numbers_until_ctrl_c(cluster):
    cluster.create_topic("orders", queues=1)
    program = "from rmqtools.cli import main; main()"
    command = [sys.executable, "-c", program, "exporter", "--port", "0", "--interval", "1"]
    command += ["--address", "127.0.0.2", "--deadline", "20"]
    variables = {**os.environ, "NAMESRV_ADDR": cluster.name_server, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables
    ) as one:
        assert one.stdout is not None
        (url,) = re.findall(r"^(http://127\.0\.0\.2:\d+/metrics) has ", one.stdout.readline())

        def shown() -> str:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                text: str = answer.read().decode()
                return text

        wait_until(lambda: "rmqtools_exporter_up 1.0" in shown())
        text = shown()
        one.send_signal(signal.SIGINT)
        _, errors = one.communicate(timeout=PATIENCE)

    assert 'rocketmq_producer_offset{broker="broker-a",topic="orders"} 0.0' in text
    assert (one.returncode, errors) == (130, "")


def test_a_port_that_is_taken_is_an_error_with_the_remedy(run, cluster):
    port = cluster.name_server.rpartition(":")[2]

    with pytest.raises(ConfigError, match=rf"127\.0\.0\.1:{port} cannot be used: .*give another --port"):
        run("exporter", "--port", port)
