"""Reads records from the trace topic."""

from rmqtools import Admin, Client
from rmqtools.model.trace import PubTrace, Trace
from rmqtools.protocol.messages.trace import parse_traces
from rmqtools.testing import Drain
from tests.support.cluster_scene import wait_until


def parse_pubs(text: str) -> list[PubTrace]:
    """Read the Pub records of a trace message; records of other kinds are left out."""
    return [record for record in parse_traces(text.encode()) if isinstance(record, PubTrace)]


def await_records(client: Client, admin: Admin, topic: str, count: int) -> list[Trace]:
    """Return every record of a trace topic, as soon as it holds ``count``."""
    drain = Drain(client, admin)
    found: list[Trace] = []

    def enough() -> bool:
        found.extend(record for message in drain(topic) for record in parse_traces(message.body))
        return len(found) >= count

    wait_until(enough)
    return found
