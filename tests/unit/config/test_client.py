import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from rmqtools.config import ClientConfig, ProducerConfig
from rmqtools.config.text import parse_address
from rmqtools.errors import ConfigError


def test_name_servers_are_separated_by_semicolons():
    config = ClientConfig(name_server=" 10.0.0.1:9876 ;http://10.0.0.2:9876;")

    assert config.name_servers == ("10.0.0.1:9876", "10.0.0.2:9876")


def test_without_a_name_server_the_environment_is_asked(monkeypatch):
    monkeypatch.setenv("NAMESRV_ADDR", "10.0.0.9:9876")

    assert ClientConfig().name_servers == ("10.0.0.9:9876",)


def test_no_name_server_at_all_is_refused_with_both_remedies(monkeypatch):
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)

    with pytest.raises(ConfigError, match=r"name_server='host:port'.*NAMESRV_ADDR"):
        ClientConfig()


def test_an_empty_read_group_is_refused():
    with pytest.raises(ConfigError, match="read_group=' ': it is empty; name a group, or leave it out"):
        ClientConfig(name_server="h:1", read_group=" ")


@pytest.mark.parametrize(
    "address",
    [
        *("", "host", "host:", ":9876", "host:0", "host:65536", "host:9x", "h:-1"),
        *("HTTP://h:1", "tcp://h:1", "h：1", "a:1，b:1", "a b:1", "user@h:1", "h/x:1"),
    ],
)
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(ConfigError, match="want host:port"):
        parse_address(address)


def test_an_ipv6_address_stands_in_brackets():
    assert parse_address("[::1]:9876") == ("::1", 9876)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"connect_timeout": 0}, "connect_timeout=0: want more than 0"),
        ({"request_timeout": -1}, "request_timeout=-1"),
        ({"access_key": "a"}, "go together"),
        ({"send_timeout": 0}, "send_timeout=0"),
        ({"retry_times_when_send_failed": -1}, "want 0 or more"),
        ({"linger": -0.1}, r"linger=-0\.1: want 0 or more, and less than send_timeout=3\.0"),
        ({"linger": 3.0}, r"linger=3\.0: want 0 or more, and less than send_timeout=3\.0"),
        ({"linger": float("nan")}, "linger=nan: want 0 or more"),
        ({"batch_bytes": 0}, "batch_bytes=0: want more than 0"),
        ({"back_pressure_for_async_send_num": 0}, "back_pressure_for_async_send_num=0: want more than 0"),
        ({"back_pressure_for_async_send_size": 0}, "back_pressure_for_async_send_size=0: want more than 0"),
        (
            {"linger": 0.01, "batch_bytes": 2000, "max_message_bytes": 1999},
            "batch_bytes=2000: want at most max_message_bytes=1999",
        ),
    ],
)
def test_a_setting_that_cannot_work_is_refused_by_name_and_value(settings, text):
    with pytest.raises(ConfigError, match=text):
        ProducerConfig(name_server="h:1", **settings)


def test_text_becomes_settings_whatever_the_case_and_separators():
    config = ProducerConfig.from_mapping(
        {
            "nameServer": "h:1",
            "SEND_TIMEOUT": "2.5",
            "retry-times-when-send-failed": "4",
            "tls.enable": "true",
            "brokerAddressMap": "10.0.0.1:10911=127.0.0.1:10911",
        }
    )

    assert (config.send_timeout, config.retry_times_when_send_failed, config.tls_enable) == (2.5, 4, True)
    assert config.broker_address_map == {"10.0.0.1:10911": "127.0.0.1:10911"}


def test_an_unknown_setting_is_refused_with_the_nearest_known_one():
    with pytest.raises(ConfigError, match=r"unknown setting 'send_timeot' \(did you mean 'send_timeout'\?\)"):
        ProducerConfig.from_mapping({"name_server": "h:1", "send_timeot": "1"})


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("send_timeout", "soon", "seconds"),
        ("max_in_flight", "1.5", "a whole number"),
        ("tls_enable", "maybe", "true or false"),
        ("broker_address_map", "a", "from=to"),
    ],
)
def test_text_of_the_wrong_type_is_refused(name, text, wanted):
    with pytest.raises(ConfigError, match=f"setting '{name}': '{text}' is not {wanted}"):
        ProducerConfig.from_mapping({"name_server": "h:1", name: text})


@pytest.mark.parametrize(
    "settings",
    [
        {"tls_ca_file": "ca.pem"},
        {"tls_cert_file": "mine.pem"},
        {"tls_cert_file": "mine.pem", "tls_key_file": "mine.key"},
        {"tls_cert_file": "mine.pem", "tls_key_password": "p"},
        {"tls_check_hostname": False},
    ],
    ids=lambda settings: "+".join(settings),
)
def test_tls_settings_without_tls_are_refused_because_nothing_would_be_encrypted(settings):
    with pytest.raises(
        ConfigError, match=f"^{', '.join(settings)} without tls_enable: .*set tls_enable=True"
    ):
        ClientConfig(name_server="127.0.0.1:9876", **settings)

    assert ClientConfig(name_server="127.0.0.1:9876", tls_enable=True, **settings)


@pytest.mark.parametrize("setting", ["tls_key_file", "tls_key_password"])
def test_a_key_without_its_certificate_is_refused(setting):
    with pytest.raises(ConfigError, match=rf"^{setting}.*want tls_cert_file too"):
        ClientConfig(name_server="127.0.0.1:9876", tls_enable=True, **{setting: "hunter2"})  # type: ignore[arg-type]  # its name varies


def test_secrets_show_neither_in_repr_nor_in_asdict_and_are_what_was_given():
    secrets: Any = {"secret_key": "hunter2", "security_token": "hunter2", "tls_key_password": "hunter2"}
    config: Any = ClientConfig(
        name_server="127.0.0.1:9876", access_key="alice", tls_enable=True, tls_cert_file="c", **secrets
    )

    assert "hunter2" not in repr(config) + repr(asdict(config)) + json.dumps(asdict(config))
    assert {name: getattr(config, name).reveal() for name in secrets} == secrets
    assert replace(config, namespace="n").secret_key.reveal() == "hunter2"


@pytest.mark.parametrize("text", ["a:1;;b:1", ";a:1", "a:1,,b:1"])
def test_an_empty_part_of_the_name_servers_is_refused(text):
    with pytest.raises(ConfigError, match="a part is empty"):
        ClientConfig(name_server=text)


@pytest.mark.parametrize("name", ["access_key", "secret_key", "security_token"])
def test_a_key_with_the_end_of_a_line_is_refused_by_name(name):
    keys = {"access_key": "a", "secret_key": "s"} | {name: "from a file\r"}

    with pytest.raises(ConfigError, match=f"{name} has a control character") as refused:
        ClientConfig(name_server="h:1", **keys)
    assert "from a file" not in str(refused.value)


def test_an_http_address_with_a_path_is_a_list_and_without_one_a_name_server():
    assert ClientConfig(name_server="http://names:8080/list").name_server_url == "http://names:8080/list"
    assert ClientConfig(name_server="http://names:8080").name_servers == ("names:8080",)
