"""``rmqtools group create`` and ``alter`` on the cluster in this process."""

from rmqtools.cli.group_settings import KINDS
from rmqtools.group import GroupSettings
from rmqtools.model.group_config import SubscriptionGroupConfig


def test_what_is_not_given_stays_on_each_broker(run, cluster, admin):
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


def test_a_look_changes_nothing(run, admin):
    admin.create_group("looked-at", retry_max_times=4)

    shown = run("group", "alter", "looked-at").stdout
    dry = run("group", "alter", "looked-at", "-c", "retry_max_times=1", "--dry-run").stdout
    same = run("group", "alter", "looked-at", "-c", "retry_max_times=4").stdout

    assert ["retry_max_times", "4", "4"] in [line.split() for line in shown.splitlines()]
    assert "is changed" not in dry
    assert same == "group looked-at has these settings already\n"
    assert admin.fetch_group_configs("looked-at")["broker-a"].retry_max_times == 4


def test_settings_have_the_names_and_defaults_of_what_brokers_store():
    stored = SubscriptionGroupConfig(group_name="g")

    assert {name for name in GroupSettings.__annotations__ if not hasattr(stored, name)} == set()
    assert {type(getattr(stored, name)) is kind for name, kind in KINDS.items()} == {True}
