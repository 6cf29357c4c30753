"""The option table: names, values, errors."""

from pathlib import Path

import pytest

import spark_connector
from rmqtools.errors import ConfigError
from spark_connector.options.option_table import OPTIONS, describe_options, parse_options
from tests.support.spark_options import read_of, write_of


def test_a_write_may_leave_the_topic_to_its_rows():
    assert write_of().topic is None


def test_client_settings_arrive_by_option_and_by_prefix():
    given = {
        "namespace": "tenant",
        "accesskey": "alice",
        "secretkey": "s3cret",
        "brokeraddressmap": "10.0.0.5:10911=127.0.0.1:20911",
        "rocketmq.requesttimeout": "9.5",
        "tls.enable": "true",
        "tls.cafile": "/etc/ca.pem",
    }
    client = read_of(**given).client

    assert (client.access_key, client.secret_key, client.request_timeout) == ("alice", "s3cret", 9.5)
    assert client.namespace == "tenant"
    assert (client.tls_enable, client.tls_ca_file) == (True, "/etc/ca.pem")
    assert client.broker_address_map == {"10.0.0.5:10911": "127.0.0.1:20911"}


@pytest.mark.parametrize("given", [{"rocketmq.sendtimeout": "1.5"}, {"sendtimeoutms": "1500"}])
def test_producer_settings_arrive_at_a_write_by_prefix_and_by_option_in_sparks_units(given):
    assert write_of(**given).producer.send_timeout == 1.5


@pytest.mark.parametrize(
    ("given", "batch_bytes"),
    [
        ({}, 512 * 1024),
        ({"rocketmq.sendLatencyFaultEnable": "false"}, 512 * 1024),
        ({"batchBytes": "1000"}, 1000),
        ({"rocketmq.max_batch_bytes": "1000"}, 1000),
    ],
)
def test_writes_have_requests_of_512_kib_unless_their_size_is_given(given, batch_bytes):
    producer = write_of(**given).producer

    assert (producer.max_batch_bytes, producer.max_in_flight) == (batch_bytes, 16)


def test_the_environment_may_name_the_name_server(monkeypatch):
    monkeypatch.setenv("NAMESRV_ADDR", "10.0.0.1:9876")

    assert read_of(nameServer=None).client.name_servers == ("10.0.0.1:9876",)


def test_sparks_own_options_are_accepted_everywhere():
    given = {"path": "x", "checkpointLocation": "y", "queryname": "z"}

    assert read_of(**given) == read_of()
    assert write_of(**given) == write_of()


def test_an_option_like_no_other_is_refused_with_the_three_nearest_names():
    with pytest.raises(ConfigError, match=f"{len(OPTIONS)} are known, the nearest: ") as refusal:
        parse_options({"zzz": "1"})

    text = str(refusal.value)
    assert sum(option.name in text.split("nearest: ")[1].split(", ") for option in OPTIONS) >= 2


def test_defaults_are_values_of_their_options():
    for option in OPTIONS:
        assert option.default is None or option.parse(option.default) is not None


def test_the_page_of_options_is_the_table():
    page = Path(spark_connector.__file__).with_name("OPTIONS.md")

    assert page.read_text() == describe_options(), "run .venv/bin/python -m tools.surface --write"
