"""``rmqtools broker drain`` and ``undrain``: before a broker is stopped, and after."""

from threading import Event
from typing import Annotated

import typer

from rmqtools import Admin, Client, ClientConfig
from rmqtools.broker import BrokerBacklog, awaited, incoming, left_behind
from rmqtools.cli.change import DryRun, Yes, agreed
from rmqtools.cli.connection import NameServer, Settings, client_config
from rmqtools.cli.exit_code import ExitCode
from rmqtools.cli.group import is_system_group
from rmqtools.cli.moments import clock_text, duration_option
from rmqtools.cli.printing import ends_quietly, now, say
from rmqtools.cli.topic import user_topics
from rmqtools.clock import SYSTEM_CLOCK

_QUIET_LOOKS = 2  # so many looks in a row without a new message: producers look at routes every 30 s

Broker = Annotated[str, typer.Argument(help="The broker's name.", show_default=False)]


def drain(
    broker: Broker,
    name_server: NameServer = "",
    timeout: Annotated[float, duration_option("End after so long, drained or not.")] = 600,
    interval: Annotated[float, duration_option("Time between two looks.", least=0.1)] = 15,
    dry_run: DryRun = False,
    yes: Yes = False,
    settings: Settings = None,
) -> None:
    """Forbid writing to a broker, wait until its messages are consumed, and say when it may be stopped.

    Shows what still comes in, and what waits: groups, delayed and timer messages, half and popped messages.
    Exit code 0: it may be stopped; 1: something is left. The command does not wait for groups without
    members: it names their messages, which the broker keeps. undrain or a restart allows writing again.
    """
    with ends_quietly(), Client(client_config(name_server, settings, ClientConfig)) as client:
        admin, before = Admin(client), _backlog(client, broker)
        question = f"Forbid writing to broker {broker}, and wait until it is drained?"
        if not agreed(question, yes=yes, dry_run=dry_run):
            say(f"broker {broker} waits for: {'; '.join(awaited(before)) or 'nothing'}")
            return
        admin.forbid_writing(broker)
        say(f"broker {broker} is read-only: producers look at routes every 30 s")
        deadline, quiet = SYSTEM_CLOCK.monotonic() + timeout, 0
        while True:
            Event().wait(interval)
            if broker not in admin.fetch_read_only_brokers():
                say(f"broker {broker} had registered its topics anew: forbidding it again")
                admin.forbid_writing(broker)
            backlog = _backlog(client, broker)
            comes = incoming(before, backlog)
            before, quiet = backlog, 0 if comes else quiet + 1
            say(
                f"{clock_text(now())}  {_in_text(comes)}; waiting: {'; '.join(awaited(backlog)) or 'nothing'}"
            )
            if quiet >= _QUIET_LOOKS and not awaited(backlog):
                break
            if SYSTEM_CLOCK.monotonic() > deadline:
                say(f"broker {broker} is not drained after {timeout:.0f} s; it stays read-only")
                raise typer.Exit(ExitCode.NO)
    if left := left_behind(backlog):
        say(f"broker {broker} has messages that nobody consumes now: {'; '.join(left)}")
        raise typer.Exit(ExitCode.NO)
    say(f"broker {broker} may be stopped")


def undrain(
    broker: Broker,
    name_server: NameServer = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    settings: Settings = None,
) -> None:
    """Allow writing to a broker again: after drain, or where brokerPermission forbids it."""
    with Admin(client_config(name_server, settings, ClientConfig)) as admin:
        if dry_run:
            is_read_only = broker in admin.fetch_read_only_brokers()
            say(f"broker {broker} is {'read-only' if is_read_only else 'not read-only'} now")
            return
        admin.allow_writing(broker)
    say(f"broker {broker} is writable: producers send to it within 30 s")


def _backlog(client: Client, broker: str) -> BrokerBacklog:
    """Return what waits at a broker; another one that does not answer is left out of this look."""
    admin = Admin(client, partial=True)
    groups = [name for name in admin.fetch_group_list() if not is_system_group(name)]
    return admin.fetch_broker_backlog(broker, topics=user_topics(admin), groups=groups)


def _in_text(comes: dict[str, int]) -> str:
    topics = ", ".join(f"{topic} {count}" for topic, count in sorted(comes.items()))
    return f"came in: {topics}" if topics else "nothing came in"
