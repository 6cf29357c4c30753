"""Keys from options, a file or the environment; none of them in any text."""

import logging
import pickle

import pytest

from rmqtools.errors import ConfigError
from spark_connector.options.option_table import parse_options
from spark_connector.options.write_settings import write_options

SERVER = {"nameServer": "h:1"}
SECRET = "hunter2-secret"


def keys(**options):
    producer = write_options(parse_options(SERVER | options)).producer
    return producer.access_key, producer.secret_key, producer.security_token


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "credentials"
        path.write_text(text)
        return str(path)

    return write


@pytest.mark.parametrize(
    ("text", "held"),
    [
        pytest.param("accessKey: alice\nsecretKey: s\n", ("alice", "s", None), id="tools-yml"),
        pytest.param("# mine\naccess_key = a\n\nsecret_key='s'\n", ("a", "s", None), id="properties"),
        pytest.param("accessKey=a\nsecretKey=x=y:z\n", ("a", "x=y:z", None), id="separators-in-a-key"),
        pytest.param("accessKey=a\nsecretKey=b\nsecurityToken=t\n", ("a", "b", "t"), id="with-a-token"),
    ],
)
def test_a_file_holds_keys(file, text, held):
    assert keys(credentialsFile=file(text)) == held


def test_the_environment_holds_keys_where_nothing_else_does(monkeypatch, file):
    monkeypatch.setenv("ROCKETMQ_ACCESS_KEY", "env")
    monkeypatch.setenv("ROCKETMQ_SECRET_KEY", "env-secret")

    assert keys() == ("env", "env-secret", None)
    assert keys(accessKey="alice", secretKey=SECRET) == ("alice", SECRET, None)
    assert keys(credentialsFile=file("accessKey=f\nsecretKey=g\n")) == ("f", "g", None)


def test_a_file_without_both_keys_is_refused_and_not_quoted(file):
    with pytest.raises(ConfigError, match="want a line accessKey") as refusal:
        keys(credentialsFile=file(f"secretKey: {SECRET}\n"))

    assert SECRET not in str(refusal.value)


def test_half_a_pair_in_the_environment_is_refused(monkeypatch):
    monkeypatch.setenv("ROCKETMQ_SECRET_KEY", SECRET)

    with pytest.raises(
        ConfigError, match="ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY go together"
    ) as refusal:
        keys()

    assert SECRET not in str(refusal.value)


def test_no_text_about_options_holds_a_key(caplog):
    given = parse_options(SERVER | {"accessKey": "alice-the-user", "secretKey": SECRET})
    options = write_options(given)
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("spark_connector").info("options: %s %r", options, given)

    shown = f"{given} {given!r} {options} {options!r} {options.producer} {caplog.text}"

    assert SECRET not in shown
    assert "alice-the-user" not in shown
    assert write_options(pickle.loads(pickle.dumps(given))).producer.secret_key == SECRET
