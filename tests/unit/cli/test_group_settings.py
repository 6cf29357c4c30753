"""``rmqtools group create`` and ``alter`` on the cluster in this process."""

import pytest

from rmqtools.cli.group_settings import KINDS, group_settings
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.group import GroupSettings
from rmqtools.model.group_config import SubscriptionGroupConfig


def test_a_group_is_made_once_and_what_is_not_given_stays_on_each_broker(run, cluster, admin):
    made = run("group", "create", "paying", "-c", "retryMaxTimes=3", "-c", "consume_message_orderly=true")
    admin.create_group("paying", retry_queue_nums=2)
    changed = run("group", "alter", "paying", "-c", "retry_max_times=5")

    config = SubscriptionGroupConfig(
        group_name="paying", retry_max_times=5, consume_message_orderly=True, retry_queue_nums=2
    )
    assert made.stdout == "group paying is created on broker-a, broker-b\n"
    assert [line.split() for line in changed.stdout.splitlines()] == [
        ["BROKER", "SETTING", "BEFORE", "AFTER"],
        ["broker-a", "retry_max_times", "3", "5"],
        ["broker-b", "retry_max_times", "3", "5"],
        ["group", "paying", "is", "changed"],
    ]
    assert admin.fetch_group_configs("paying") == {"broker-a": config, "broker-b": config}
    with pytest.raises(
        RocketMQError, match="group 'paying' exists: change it with rmqtools group alter paying"
    ):
        run("group", "create", "paying")


def test_a_look_changes_nothing(run, admin):
    admin.create_group("looked-at", retry_max_times=4)

    shown = run("group", "alter", "looked-at").stdout
    dry = run("group", "alter", "looked-at", "-c", "retry_max_times=1", "--dry-run").stdout
    same = run("group", "alter", "looked-at", "-c", "retry_max_times=4").stdout

    assert ["retry_max_times", "4", "4"] in [line.split() for line in shown.splitlines()]
    assert "is changed" not in dry
    assert same == "group looked-at has these settings already\n"
    assert admin.fetch_group_configs("looked-at")["broker-a"].retry_max_times == 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("retry_max_time=3", r"unknown setting of a group 'retry_max_time' \(did you mean 'retry_max_times'"),
        ("retry_max_times=many", "'retry_max_times': 'many' is not a whole number"),
        ("consume_enable=perhaps", "'consume_enable': 'perhaps' is not true or false"),
        ("retry_max_times", "want NAME=VALUE"),
    ],
)
def test_what_is_no_setting_is_refused(text, words):
    with pytest.raises(ConfigError, match=words):
        group_settings([text])


def test_a_number_below_zero_and_an_unknown_group_are_refused(run):
    with pytest.raises(ConfigError, match="retry_max_times = -1: want 0 or more"):
        run("group", "create", "g", "-c", "retry_max_times=-1")
    with pytest.raises(RocketMQError, match="unknown group 'nosuch'"):
        run("group", "alter", "nosuch", "-c", "retry_max_times=1")


def test_settings_have_the_names_and_defaults_of_what_brokers_store():
    stored = SubscriptionGroupConfig(group_name="g")

    assert {name for name in GroupSettings.__annotations__ if not hasattr(stored, name)} == set()
    assert {type(getattr(stored, name)) is kind for name, kind in KINDS.items()} == {True}
