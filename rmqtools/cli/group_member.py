"""``rmqtools group show --member``: one member from inside, by its own report."""

import typer

from rmqtools import Admin
from rmqtools.cli.exit_code import ExitCode
from rmqtools.cli.printing import Column, now, print_json, print_table, say, time_text, warning
from rmqtools.errors import ConfigError
from rmqtools.group import GroupMember, member_of
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.model.queue import queue_name
from rmqtools.model.running_info import ConsumerRunningInfo
from rmqtools.unknown_name import unknown_name


def show_member(
    admin: Admin, group: str, name: str, *, namespace: str | None, stack: bool, as_json: bool
) -> None:
    """Print a member's settings, queues, rates, and with ``stack`` where its threads and tasks are.

    Raises:
        ConfigError: the group has no such member.
        RocketMQError: the member does not answer its broker.
    """
    known = {each.client_id: each for each in admin.fetch_consumer_connection(group).connection_set}
    client_id = _chosen(name, list(known), group)
    info = admin.fetch_running_info(group, client_id, stacks=stack)
    member = member_of(known[client_id], info, namespace)
    if as_json:
        print_json(_as_values(member, info))
        return
    say(f"member {client_id} of group {group}: {member.language} {member.version}, {member.addr}")
    _print_settings(member, info)
    if member.states:
        _print_queues(member)
    if member.rates:
        _print_rates(member)
    if stack and not info.jstack:
        say("the member sent no stacks: members in Java and Python do")
        raise typer.Exit(ExitCode.NO)
    if stack:
        for line in str(info.jstack).splitlines():
            say(line)


def _chosen(name: str, client_ids: list[str], group: str) -> str:
    """Return the member of this client id, or the only one whose client id begins so."""
    found = [one for one in client_ids if one == name] or [one for one in client_ids if one.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(f"--member {name!r}: {len(found)} members begin so: {', '.join(found)}")
    raise ConfigError(unknown_name(f"member of group {group!r}", name, client_ids))


def _print_settings(member: GroupMember, info: ConsumerRunningInfo) -> None:
    started = info.properties.get("PROP_CONSUMER_START_TIMESTAMP", "")
    lines = {
        "strategy": member.strategy,
        "subscribes to": ", ".join(f"{topic} {text}" for topic, text, _ in sorted(member.subscriptions)),
        "started": time_text(int(started)) if started.isdigit() else None,
        "longest call": None if member.longest_call is None else f"{member.longest_call:.1f} s",
        "last failure": member.last_error,
    }
    for name, value in lines.items():
        say(f"{name + ':':<15}{value or '-'}")


def _print_queues(member: GroupMember) -> None:
    columns = [Column("topic", 2), Column("queue"), Column("next offset", 1)]
    columns += [Column("fetched", style=warning), Column("fetched at"), Column("consumed at")]
    now_ms = member.now_ms or int(now().timestamp() * 1000)
    rows = [
        (
            queue.topic,
            queue_name(queue),
            state.commit_offset,
            state.cached_msg_count + state.transaction_msg_count,
            _ago(state.last_pull_timestamp, now_ms),
            _ago(state.last_consume_timestamp, now_ms),
        )
        for queue, state in sorted(member.states.items())
    ]
    print_table(columns, rows)


def _print_rates(member: GroupMember) -> None:
    columns = [Column("topic"), Column("pulls/s", 2), Column("consumed/s"), Column("call ms")]
    columns += [Column("failed/s", style=warning), Column("failed in the last hour", 1, warning)]
    rows = [
        (
            *(topic, rate.pull_tps, rate.consume_ok_tps, rate.consume_rt),
            *(rate.consume_failed_tps, rate.consume_failed_msgs),
        )
        for topic, rate in sorted(member.rates.items())
        if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
    ]
    print_table(columns, rows)


def _ago(timestamp_ms: int, now_ms: int) -> str | None:
    return f"{max(now_ms - timestamp_ms, 0) / 1000:.0f} s ago" if timestamp_ms else None


def _as_values(member: GroupMember, info: ConsumerRunningInfo) -> dict[str, object]:
    """Make values for JSON: queues are objects, not keys."""
    states = [
        {"topic": queue.topic, "broker_name": queue.broker_name, "queue_id": queue.queue_id, "state": state}
        for queue, state in sorted(member.states.items())
    ]
    return {
        "client_id": member.client_id,
        "addr": member.addr,
        "properties": info.properties,
        "subscriptions": sorted(member.subscriptions),
        "queues": states,
        "rates": member.rates,
        "stack": info.jstack,
    }
