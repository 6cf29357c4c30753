"""``rmqtools export`` and ``rmqtools diff`` on clusters in this process."""

import json

import pytest
import yaml

from rmqtools import Perm
from rmqtools.cli.exit_code import ExitCode
from rmqtools.cli.settings_file import Difference, check_settings, differences
from rmqtools.errors import ConfigError, RemotingError
from rmqtools.testing import FakeCluster, Reaction


@pytest.fixture(autouse=True)
def settings(cluster, run):
    """Topics and a group."""
    cluster.create_topic("orders", queues=4)
    cluster.create_topic("only", queues=1, broker_names=["broker-a"], perm=Perm.READ)
    cluster.create_topic("%DLQ%billing", queues=1)
    cluster.create_topic("uneven", queues=1)
    cluster.create_topic("uneven", queues=2, broker_names=["broker-b"])
    run("topic", "alter", "orders", "--type", "FIFO")
    run("group", "create", "billing", "-c", "retry_max_times=3")


@pytest.fixture
def file(run, tmp_path):
    run("export", "-o", tmp_path / "settings.yaml")
    return tmp_path / "settings.yaml"


def test_an_export_has_topics_and_groups_with_what_is_not_the_default(run):
    exported = yaml.safe_load(run("export").stdout)
    del exported["brokers"]

    assert exported == {
        "topics": {
            "only": {"read_queues": 1, "write_queues": 1, "permission": "r", "brokers": ["broker-a"]},
            "orders": {
                "read_queues": 4,
                "write_queues": 4,
                "permission": "rw",
                "attributes": {"message.type": "FIFO"},
            },
            "uneven": {
                "by_broker": {
                    "broker-a": {"read_queues": 1, "write_queues": 1, "permission": "rw"},
                    "broker-b": {"read_queues": 2, "write_queues": 2, "permission": "rw"},
                }
            },
        },
        "groups": {"billing": {"retry_max_times": 3}},
    }


def test_an_export_to_a_dash_is_printed(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert run("export", "-o", "-").stdout == run("export").stdout
    assert not (tmp_path / "-").exists()


def test_a_cluster_is_equal_to_its_own_export(run, file):
    shown = run("diff", file)

    assert (shown.exit_code, shown.stdout) == (0, "equal: 3 topics, 1 group\n")


def test_settings_of_brokers_are_compared_but_not_those_of_a_machine_nor_secrets(run, file, cluster):
    run("broker", "config", "broker-a", "-c", "fileReservedTime=48", "--yes")

    (row,) = json.loads(run("diff", file, "--json").stdout)
    exported = yaml.safe_load(run("export").stdout)["brokers"]["masters"]

    assert row == {
        "kind": "brokers",
        "name": "masters",
        "setting": "fileReservedTime",
        "left": "72",
        "right": "48 at broker-a, 72 at broker-b",
    }
    assert "brokerName" not in exported


def test_a_file_without_settings_of_brokers_is_compared_in_the_rest(run, file):
    given = yaml.safe_load(file.read_text())
    del given["brokers"]
    file.write_text(yaml.safe_dump(given))

    assert run("diff", file).exit_code == 0


def test_what_differs_is_listed_and_ends_with_1(run, file, cluster):
    run("topic", "alter", "only", "--perm", "rw")
    run("group", "create", "fresh")

    shown = run("diff", file, cluster.name_server)
    rows = json.loads(run("diff", file, "--json").stdout)

    assert shown.exit_code == ExitCode.NO
    assert shown.stdout.splitlines() == [
        f"left: {file}, right: {cluster.name_server}",
        "KIND    NAME   SETTING     LEFT  RIGHT",
        "topics  only   permission  r     rw",
        "groups  fresh  -           -     present",
    ]
    assert [row["name"] for row in rows] == ["only", "fresh"]


def test_two_clusters_are_compared_whatever_their_brokers_are_called(run, cluster):
    with FakeCluster(brokers=("one",)) as other:
        other.create_topic("orders", queues=4)
        (*_, row) = json.loads(run("diff", cluster.name_server, other.name_server, "--json").stdout)
        equal = run("diff", other.name_server, other.name_server)

    assert equal.exit_code == 0
    assert row == {"kind": "groups", "name": "billing", "setting": "", "left": "present", "right": None}


def test_a_cluster_that_does_not_answer_is_an_error_and_no_difference(run, file):
    with pytest.raises(RemotingError):
        run("diff", file, "127.0.0.1:1", "--set", "request_timeout=0.2")


def test_an_export_that_lacks_a_broker_says_so_and_is_not_compared(run, tmp_path, cluster):
    fault = cluster.fault(broker="broker-b", times=None, answer=Reaction.DISCONNECT)
    lacks = run("export", "-o", tmp_path / "part.yaml")
    fault.remove()

    assert lacks.exit_code == ExitCode.INCOMPLETE
    exported = yaml.safe_load((tmp_path / "part.yaml").read_text())
    assert exported["topics"]["orders"].keys() == {"read_queues", "write_queues", "permission", "attributes"}
    with pytest.raises(ConfigError, match=r"part.yaml is incomplete: brokers \['broker-b'\] did not answer"):
        run("diff", tmp_path / "part.yaml")


def test_an_existing_file_is_replaced_if_wished(run, file):
    assert run("export", "-o", file, "--overwrite").stdout.startswith("3 topics and 1 group written to ")


@pytest.mark.parametrize("settings", [[1], {"topics": 3}, {"topics": {"a": 3}}, {"brokers": 3}], ids=str)
def test_settings_of_another_form_are_refused_by_the_name_of_their_file(settings):
    with pytest.raises(ConfigError, match=r"bad\.yaml"):
        check_settings(settings, "bad.yaml")


def test_settings_within_settings_are_compared_one_by_one():
    left = {"topics": {"T": {"attributes": {"a.b": "1", "c": "2"}}}, "groups": {}}
    right = {"topics": {"T": {"attributes": {"a.b": "3", "c": "2"}}}, "groups": {}}

    assert differences(left, right) == [Difference("topics", "T", "attributes a.b", "1", "3")]


def test_names_that_yaml_reads_as_numbers_are_names():
    assert check_settings({"topics": {7: None}}, "file") == {"topics": {"7": {}}, "groups": {}}
