"""Profiles: where settings come from, and that no secret is shown or read by others."""

import json

import pytest
from typer.testing import CliRunner

from rmqtools import ClientConfig
from rmqtools.cli import app
from rmqtools.cli.connection import client_config
from rmqtools.errors import ConfigError


@pytest.fixture(autouse=True)
def path(tmp_path, monkeypatch):
    for name in ("NAMESRV_ADDR", "RMQTOOLS_PROFILE", "RMQTOOLS_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RMQTOOLS_CONFIG", str(tmp_path / "dir" / "config.toml"))
    return tmp_path / "dir" / "config.toml"


def run(*arguments):
    result = CliRunner().invoke(app, ["profile", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_profile_is_created_used_listed_and_then_counts(path):
    run("create", "staging", "-n", "10.0.0.5:9876", "--set", "namespace=ns")
    run("create", "prod", "-n", "10.0.0.6:9876")
    run("use", "prod")
    run("use", "staging")

    config = client_config("", None, ClientConfig)

    assert (config.name_server, config.namespace) == ("10.0.0.5:9876", "ns")
    assert json.loads(run("list", "--json"))[0] == {
        "profile": "staging",
        "name_server": "10.0.0.5:9876",
        "current": True,
    }
    assert path.stat().st_mode & 0o077 == 0


def test_a_file_that_an_editor_began_with_a_byte_order_mark_can_be_read_after_use(path):
    path.parent.mkdir()
    path.write_text('[profiles.p]\nname_server = "h:1"\n', encoding="utf-8-sig")

    run("use", "p")

    assert client_config("", None, ClientConfig).name_server == "h:1"


def test_a_value_has_characters_of_every_plane(tmp_path):
    token = tmp_path / "\U00020bb7\U0001f511"
    token.write_text("s3cret")
    run("create", "p", "-n", "h:1", "--set", "access_key=ops", "--set", f"secret_key_file={token}")
    run("use", "p")

    assert client_config("", None, ClientConfig).secret_key == "s3cret"


@pytest.mark.parametrize("value", ["ns=\x7f", "ns=\udc80"], ids=["no-text-of-toml", "no-unicode"])
def test_a_value_that_would_make_the_file_unreadable_leaves_it_as_it_is(path, value):
    run("create", "p", "-n", "h:1")

    with pytest.raises(ConfigError, match="stays as it is: with this change it could not be read"):
        run("create", "q", "-n", "h:1", "--set", f"instance_name={value}")

    assert path.read_text() == '[profiles.p]\nname_server = "h:1"\n'


def test_options_go_before_the_environment_and_that_before_the_profile(monkeypatch):
    run("create", "p", "-n", "h:1", "--set", "namespace=profile", "--set", "request_timeout=7")
    run("use", "p")
    monkeypatch.setenv("RMQTOOLS_NAMESPACE", "environment")

    of_both = client_config("", None, ClientConfig)
    of_line = client_config("h:2", ["namespace=line"], ClientConfig)

    assert (of_both.namespace, of_both.request_timeout) == ("environment", 7.0)
    assert (of_line.name_server, of_line.namespace) == ("h:2", "line")


def test_a_variable_chooses_a_profile_for_one_command(monkeypatch):
    run("create", "a", "-n", "h:1")
    run("create", "b", "-n", "h:2")
    run("use", "a")
    monkeypatch.setenv("RMQTOOLS_PROFILE", "b")

    assert client_config("", None, ClientConfig).name_server == "h:2"


def test_a_secret_stands_in_a_file_of_its_own_or_in_the_environment(tmp_path, monkeypatch):
    key = tmp_path / "key"
    key.write_text("s3cret\n")
    run("create", "p", "-n", "h:1", "--set", "access_key=ops", "--set", f"secret_key_file={key}")
    run("use", "p")
    of_profile = client_config("", None, ClientConfig)
    key.write_text("another")
    monkeypatch.setenv("RMQTOOLS_SECRET_KEY_FILE", str(key))

    assert of_profile.secret_key == "s3cret"
    assert client_config("", None, ClientConfig).secret_key == "another"


def test_a_file_with_a_secret_that_others_may_read_is_refused(path):
    path.parent.mkdir()
    path.write_text('current = "p"\n[profiles.p]\nname_server = "h:1"\naccess_key = "a"\nsecret_key = "s"\n')
    path.chmod(0o644)

    with pytest.raises(ConfigError, match="has a secret and others may read it: chmod 600"):
        client_config("", None, ClientConfig)

    path.chmod(0o600)
    assert client_config("", None, ClientConfig).secret_key == "s"
    assert json.loads(run("show"))["secret_key"] == "(hidden)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("current = 'x'", "unknown profile 'x'"),
        ("current = 'p'\n[profiles.p]\nnamserver = 'h:1'", "unknown setting 'namserver'"),
        ("current = ", "cannot be read: .*: correct it, or set RMQTOOLS_CONFIG"),
        ("current = 'p'\nprofiles = 1", r"want a table \[profiles.NAME\]"),
        (
            "current = 'p'\n[profiles.p]\nsecret_key_file = '/nosuch'",
            "secret_key_file '/nosuch' cannot be read",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_remedy(path, text, words):
    path.parent.mkdir()
    path.write_text(text)

    with pytest.raises(ConfigError, match=words):
        client_config("h:1", None, ClientConfig)
