"""A look at all servers of all brokers: it ends in time, and says what it lacks."""

import pytest

from rmqtools import ClientConfig
from rmqtools.aio import Admin
from rmqtools.errors import RemotingTimeoutError
from rmqtools.protocol.wire.command import response
from rmqtools.testing import NAME_SERVER, FakeCluster, RequestCode, ResponseCode


def patient(cluster: FakeCluster) -> Admin:
    """Administration whose requests wait for longer than a look."""
    return Admin(ClientConfig(name_server=cluster.name_server, request_timeout=15.0))


async def test_a_look_ends_in_time_and_names_the_server_that_is_silent():
    async with FakeCluster(slaves=1) as cluster, patient(cluster) as admin:
        cluster.freeze("broker-a/1")
        found = await admin.fetch_brokers(timeout=2.0)

    assert [(one.broker_id, one.error) for one in found] == [(0, None), (1, "no answer within 2 s")]


async def test_a_server_that_cannot_be_reached_or_refuses_has_its_error_and_the_others_are_shown():
    async with FakeCluster(["a", "b", "c"]) as cluster, patient(cluster) as admin:
        cluster.stop("a")
        busy = response(ResponseCode.SYSTEM_BUSY, 0, remark="too many requests")
        cluster.fault(code=RequestCode.GET_BROKER_RUNTIME_INFO, broker="b", times=None, answer=busy)
        down, refuses, well = await admin.fetch_brokers()

    assert "cannot connect" in (down.error or "")
    assert "too many requests" in (refuses.error or "")
    assert (well.error, bool(well.statistics)) == (None, True)


NO_SAMPLE = response(ResponseCode.SYSTEM_ERROR, 0, remark="java.util.NoSuchElementException, java.util.…")


async def test_a_broker_that_has_no_statistics_in_its_first_second_is_asked_again():
    async with FakeCluster() as cluster, patient(cluster) as admin:
        cluster.fault(code=RequestCode.GET_BROKER_RUNTIME_INFO, times=2, answer=NO_SAMPLE)
        (found,) = await admin.fetch_brokers()

    assert (found.error, bool(found.statistics)) == (None, True)


async def test_a_broker_that_never_has_statistics_is_asked_for_the_time_of_a_request():
    async with FakeCluster() as cluster:
        cluster.fault(code=RequestCode.GET_BROKER_RUNTIME_INFO, times=None, answer=NO_SAMPLE)
        async with Admin(ClientConfig(name_server=cluster.name_server, request_timeout=0.5)) as admin:
            (found,) = await admin.fetch_brokers()

    assert "NoSuchElementException" in (found.error or "")


async def test_a_name_server_that_is_silent_is_an_error_in_time():
    async with FakeCluster() as cluster, patient(cluster) as admin:
        cluster.freeze(NAME_SERVER)
        with pytest.raises(RemotingTimeoutError, match="no name server answered within 2 s"):
            await admin.fetch_brokers(timeout=2.0)


async def test_the_first_slave_of_a_broker_without_a_master_is_alone():
    async with FakeCluster(slaves=2) as cluster, patient(cluster) as admin:
        cluster.stop("broker-a", in_route=False)
        found = await admin.fetch_brokers()

    assert [(one.broker_id, one.is_alone) for one in found] == [(1, True), (2, False)]


async def test_a_name_server_that_lacks_a_broker_and_a_clock_that_differs_are_findings():
    async with FakeCluster(name_servers=2) as cluster, patient(cluster) as admin:
        cluster.advance(60)
        empty = response(0, 0, body=b'{"brokerAddrTable":{},"clusterAddrTable":{}}')
        cluster.fault(
            code=RequestCode.GET_BROKER_CLUSTER_INFO, broker=f"{NAME_SERVER}-1", times=None, answer=empty
        )
        check = await admin.check_cluster()

    lacks, clock = check.findings
    assert (lacks.kind, lacks.subject) == ("name_server_incomplete", check.name_servers[1].addr)
    assert "does not know broker-a, and another one does" in lacks.text
    assert (clock.kind, clock.subject) == ("clock_differs", "")
