"""Once-only consuming: :func:`deduplicate` wraps a listener and drops messages that were consumed before.

    from rmqtools.once import SqlStore, deduplicate

    store = SqlStore(engine, group="billing")

    def book(messages, context, connection):
        connection.execute(insert(payments), [{"body": message.body} for message in messages])

    consumer.subscribe("Orders", deduplicate(store, book))

:class:`SqlStore` remembers the keys of messages in the listener's own transaction: its effects happen exactly
once. :class:`RedisStore` and :class:`MemoryStore` remember them next to the effects, so a crash between the
two repeats the effects of one listener call. ``docs/once.md`` states what is promised and what is not.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rmqtools.once.deduplicate import deduplicate
from rmqtools.once.key_store import Claim, KeyStore
from rmqtools.once.memory_store import MemoryStore
from rmqtools.once.message_key import message_key
from rmqtools.once.redis_store import RedisStore

if TYPE_CHECKING:
    from rmqtools.once.sql_store import SqlStore

__all__ = ["Claim", "KeyStore", "MemoryStore", "RedisStore", "SqlStore", "deduplicate", "message_key"]


def __getattr__(name: str) -> Any:
    """Import the SQL store on first use: SQLAlchemy is optional."""
    if name != "SqlStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return import_module("rmqtools.once.sql_store").SqlStore
    except ModuleNotFoundError as error:
        raise ImportError(
            f"rmqtools.once.SqlStore needs SQLAlchemy: pip install 'rmqtools[sql]' ({error})", name=error.name
        ) from error
