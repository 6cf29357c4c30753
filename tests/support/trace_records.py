"""Reads records from the trace topic."""

from rmqtools.model.trace import PubTrace
from rmqtools.protocol.messages.trace import parse_traces


def parse_pubs(text: str) -> list[PubTrace]:
    """Read the Pub records of a trace message; records of other kinds are left out."""
    return [record for record in parse_traces(text.encode()) if isinstance(record, PubTrace)]
