"""Servers as child processes, with a program in place of Java that ends at once."""

import pytest

from rmqtools.cluster.children import Children
from rmqtools.cluster.server import name_server

pytestmark = pytest.mark.process  # a watchdog


def test_a_server_that_is_started_again_has_its_new_process_in_the_state(tmp_path):
    children, server = Children(tmp_path), name_server(tmp_path, 9)
    try:
        for _ in range(2):
            children.start(server, "/bin/true", [])

        (state,) = children.state(owner=1, detached=False).servers
        ((_, process),) = children._started
        assert state.pid == process.pid
    finally:
        children.stop(grace=0)
