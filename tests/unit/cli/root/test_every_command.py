"""Commands whose reader is gone, and Ctrl-C before there is a command."""

import importlib
import os
import signal
import subprocess
import sys

import pytest

from rmqtools.errors import RemotingError
from rmqtools.testing import NAME_SERVER, Reaction

PROGRAM = "import rmqtools_program; rmqtools_program.main()"


@pytest.mark.process
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("topic", "list", "--system"), id="table"),
        pytest.param(("topic", "list", "--json"), id="json"),
        pytest.param(("consume", "piped"), id="messages"),
        pytest.param(("broker", "config", "broker-a"), id="settings"),
    ],
)
def test_a_command_whose_reader_is_gone_ends_quietly_with_0(cluster, command):
    cluster.create_topic("piped", queues=1)
    cluster.store("piped", *[b"x" * 1000] * 500)
    reader, writer = os.pipe()
    os.close(reader)

    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command],
        stdout=writer,
        stderr=subprocess.PIPE,
        env={**os.environ, "NAMESRV_ADDR": cluster.name_server},
        check=False,
    )
    os.close(writer)

    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        pytest.param("topic list --system > /dev/full", 1, "No space left on device", id="table"),
        pytest.param("topic list --system --json > /dev/full", 1, "No space left on device", id="json"),
        pytest.param("consume piped > /dev/full", 1, "No space left on device", id="messages"),
        pytest.param("profile create p -n h:1", 1, "/proc/none cannot be used: No such file", id="folder"),
        pytest.param("topic delete piped <&-", 1, "Nobody can answer here: give --yes", id="no-input"),
        pytest.param("produce piped <&-", 0, "", id="nothing-to-send"),
        pytest.param("topic list >&-", 0, "", id="no-output"),
        pytest.param("consume piped >&- 2>&-", 0, "", id="neither"),
    ],
)
def test_a_command_whose_streams_or_files_cannot_be_used_has_no_traceback(cluster, command, code, says):
    cluster.create_topic("piped", queues=1)
    cluster.store("piped", b"x")
    program = f'"{sys.executable}" -c "{PROGRAM}" {command}'
    places = {"NAMESRV_ADDR": cluster.name_server, "RMQTOOLS_CONFIG": "/proc/none/config.toml"}

    ended = subprocess.run(
        ["sh", "-c", program], stderr=subprocess.PIPE, text=True, env={**os.environ, **places}, check=False
    )

    assert (ended.returncode, "Traceback" in ended.stderr) == (code, False)
    assert says in ended.stderr
    assert ended.stderr.count("\n") <= 1


@pytest.mark.parametrize("reaction", [Reaction.SILENCE, Reaction.DISCONNECT])
def test_a_server_that_does_not_answer_is_no_file_that_cannot_be_used(run, cluster, reaction):
    cluster.fault(broker=NAME_SERVER, times=None, answer=reaction)

    with pytest.raises(RemotingError, match=cluster.name_server):
        run("topic", "list", "--set", "request_timeout=0.1")


@pytest.mark.process
@pytest.mark.parametrize("arguments", [("--version",), ("topc",), ("topic", "list", "--name-server", ":")])
def test_python_m_rmqtools_is_the_program(arguments):
    module, program = (
        subprocess.run([sys.executable, *start, *arguments], capture_output=True, check=False)
        for start in (("-m", "rmqtools"), ("-c", PROGRAM))
    )

    assert module.returncode == program.returncode
    assert module.stdout == program.stdout
    assert module.stderr.splitlines()[-2:] == program.stderr.splitlines()[-2:]


def test_the_module_of_python_m_does_nothing_when_it_is_imported():
    importlib.import_module("rmqtools.__main__")


@pytest.mark.process
def test_ctrl_c_while_modules_are_imported_ends_without_a_traceback():
    script = (
        "import os, signal, sys, time, types\n"
        "cli = types.ModuleType('rmqtools.cli')\n"
        "cli.main = lambda: (os.kill(os.getpid(), signal.SIGINT), time.sleep(60))\n"
        "sys.modules.update({'rmqtools': types.ModuleType('rmqtools'), 'rmqtools.cli': cli})\n"
    )
    ended = subprocess.run([sys.executable, "-c", script + PROGRAM], capture_output=True, check=False)

    assert (ended.returncode, ended.stdout + ended.stderr) == (-signal.SIGINT, b"")
