"""Findings of groups and servers: the same from every tool, on the fake cluster and on a real one."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from prometheus_client import CollectorRegistry
from typer.testing import CliRunner

from rmqtools import Admin, ClientConfig, PushConsumer, PushConsumerConfig, aio
from rmqtools.allocate import AllocateAveragely, AllocateByPins, Pins
from rmqtools.cli import app
from rmqtools.cli.exporter.metrics import ClusterCollector
from rmqtools.cli.top.sampler import Sampler
from rmqtools.policy import group_check
from tests.behaviour.site import Site, until

KINDS = {"topic_missing", "queues_unreadable"}
TOLD = {  # of members that report: those of the fake cluster do not
    *("strategies_differ", "pinned_ip_absent"),
    "queue_unowned",  # the member with pins takes no queue, the other one takes half
}
Found = Counter[tuple[str, str]]
"""Kinds and texts, and how often each is found."""


@pytest.fixture
def broken(site: Site, group: str, monkeypatch) -> Iterator[str]:
    """A group: a topic is misspelt, a queue cannot be read, strategies differ, a pinned machine is absent."""
    monkeypatch.setattr(group_check, "SETTLE_SECONDS", 0.5)  # no rebalance begins meanwhile
    topic = site.new_topic(queues=3)
    site.admin.create_topic(topic, read_queue_nums=2, write_queue_nums=3, broker_names=[site.broker])
    with ExitStack() as stack:
        for name, strategy in (("one", AllocateByPins(when_absent="nobody")), ("two", AllocateAveragely())):
            config = PushConsumerConfig(name_server=site.name_server, group=group, instance_name=name)
            member = PushConsumer(config, strategy=strategy)
            member.subscribe(topic, lambda messages, context: None)
            member.subscribe(f"{topic}-misspelt", lambda messages, context: None)
            stack.enter_context(member)
        site.admin.set_pins(group, Pins(0, ["10.9.9.9"], when_absent="nobody"))
        kinds = KINDS | (TOLD if site.fake is None else {"member_silent"})
        until(lambda: {kind for kind, _ in by_recipe(site, group)} == kinds)
        yield group


def by_recipe(site: Site, group: str) -> Found:
    with Admin(ClientConfig(name_server=site.name_server), partial=True) as admin:
        return Counter((one.kind.value, one.text) for one in admin.check_group(group).findings)


def by_command(site: Site, group: str) -> Found:
    run = CliRunner().invoke(app, ["group", "check", group, "--json", "-n", site.name_server])
    return Counter((one["kind"], one["text"]) for one in json.loads(run.stdout))


def by_show(site: Site, group: str) -> Found:
    run = CliRunner().invoke(app, ["group", "show", group, "--json", "-n", site.name_server])
    return Counter((one["kind"], one["text"]) for one in json.loads(run.stdout)["findings"])


def by_top(site: Site, group: str) -> Found:
    async def look() -> Found:
        async with aio.Client(ClientConfig(name_server=site.name_server)) as client:
            found = (await Sampler(client).group(group)).check.findings
            return Counter((one.kind.value, one.text) for one in found)

    return asyncio.run(look())


def by_exporter(site: Site, group: str) -> Counter[str]:
    collector, registry = ClusterCollector(), CollectorRegistry()
    registry.register(collector)
    with Admin(ClientConfig(name_server=site.name_server), partial=True) as admin:
        collector.look(admin)
    (family,) = [each for each in registry.collect() if each.name == "rmqtools_group_findings"]
    samples = [each for each in family.samples if each.labels["group"] == group]
    return Counter({each.labels["finding"]: int(each.value) for each in samples})


def test_every_tool_has_the_same_findings_of_a_broken_group(site, broken):
    recipe = by_recipe(site, broken)

    assert by_command(site, broken) == recipe
    assert by_show(site, broken) == recipe
    assert by_top(site, broken) == recipe
    assert by_exporter(site, broken) == Counter(kind for kind, _ in recipe.elements())


def test_a_dead_name_server_is_found_by_health_and_is_no_difference_of_pins(site, group):
    site.admin.create_group(group)
    servers = ("-n", f"127.0.0.1:1;{site.name_server}")
    health = CliRunner().invoke(app, ["health", *servers])
    checked = CliRunner().invoke(app, ["group", "check", group, "--json", *servers])
    pins = CliRunner().invoke(app, ["pin", "show", *servers])

    assert health.exit_code == 1
    assert "name server 127.0.0.1:1 does not answer: " in health.stdout
    assert [one["kind"] for one in json.loads(checked.stdout)] == ["no_members"]
    assert pins.exit_code == 3
    assert pins.stderr.startswith("warning: without name server 127.0.0.1:1, which does not answer: ")


def test_a_dead_name_server_leaves_open_what_members_of_a_pinned_group_go_by(site, group):
    site.admin.create_group(group)
    site.admin.set_pins(group, Pins(0, ["10.9.9.9"], when_absent="nobody"))
    servers = f"127.0.0.1:1;{site.name_server}"
    with Admin(ClientConfig(name_server=servers)) as admin:
        found = admin.check_group(group).findings

    assert [one.kind.value for one in found] == ["name_server_silent", "no_members"]
    assert found[0].subject == "127.0.0.1:1"
