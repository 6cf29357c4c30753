"""Longer time-outs of clients in tests on real servers, which answer late on a busy machine.

Where a test sets a time-out itself, that one counts. Tests of servers that are paused keep the defaults of
users, since their clients must give up: those of ``faulty_cluster``, and those marked ``default_timeouts``.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from functools import partialmethod
from unittest import mock

import pytest

from rmqtools import (
    ClientConfig,
    ProducerConfig,
    PullConsumerConfig,
    PushConsumerConfig,
    SimpleConsumerConfig,
)
from tests.support.patience import PATIENT_REQUEST

CONFIGS = (ClientConfig, ProducerConfig, PullConsumerConfig, PushConsumerConfig, SimpleConsumerConfig)
_TIMEOUTS = {"request_timeout", "send_timeout"}


@contextmanager
def patient_defaults() -> Iterator[None]:
    """Set the default time-outs of configs made in the block to ``PATIENT_REQUEST`` (users: 3 seconds)."""
    with ExitStack() as stack:
        for config in CONFIGS:
            longer = dict.fromkeys(_TIMEOUTS & {one.name for one in fields(config)}, PATIENT_REQUEST)
            make = partialmethod(config.__init__, **longer)
            stack.enter_context(mock.patch.object(config, "__init__", make))
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run a test on real servers, its fixtures included, with longer time-outs."""
    on_servers = item.get_closest_marker("broker") or item.get_closest_marker("docker")
    pauses = "faulty_cluster" in getattr(item, "fixturenames", ()) or item.get_closest_marker(
        "default_timeouts"
    )
    if not on_servers or pauses:
        return (yield)
    with patient_defaults():
        return (yield)
