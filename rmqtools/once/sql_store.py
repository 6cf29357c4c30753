"""Keys in a database table, written in the transaction of the listener's own effects.

    consumer_group  message_key  seen_at
    varchar(255)    char(32)     bigint, seconds since 1970
    (primary key: both)          (index)

A member that inserts a key which another member's open transaction has inserted waits for the end of that
transaction. Then it finds the key, or inserts it itself. So one of two copies is consumed.

The keys of consumed messages are inserted in sorted order: two members that insert the same keys in another
order would wait for each other.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.model.message import MessageExt
from rmqtools.once.key_store import Claim
from rmqtools.once.message_key import KEY_LENGTH, KeyFunction, message_key

_INSERT: Final[Mapping[str, Callable[[sa.Table], Any]]] = {
    "postgresql": postgresql.insert,
    "sqlite": sqlite.insert,
}
_SWEEPS_PER_WINDOW: Final = 10
_SHORTEST_SWEEP: Final = 60.0  # seconds between deletions of old keys


class _NothingConsumed(Exception):
    """Ends a transaction of which nothing may stay."""


class SqlStore:
    """Remembers keys in a table, by SQLAlchemy Core.

    The listener gets a third argument, the connection of an open transaction. What it writes on that
    connection is committed with the keys, or rolled back with them. It must not commit or roll back itself.
    Listeners of one group need the same window: each removes all of the group's keys that are older than its.

    Args:
        engine: of the database that the effects are in. PostgreSQL and SQLite insert the keys of a batch in
            one statement; other databases key by key, each in a savepoint.
        group: the consumer group. Groups do not see each other's keys.
        table: name of the table; :meth:`create_table` makes it, :attr:`table` is for migrations.
        metadata: the ``MetaData`` that the table is added to; None: one of its own.
        clock: for tests.
    """

    def __init__(
        self,
        engine: sa.Engine,
        *,
        group: str,
        table: str = "rocketmq_consumed",
        metadata: sa.MetaData | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        if not isinstance(engine, sa.Engine):
            raise TypeError(
                f"SqlStore() got the engine {engine!r}: want a sqlalchemy.Engine; listeners block"
            )
        if not group:
            raise ValueError("group='': want the name of the consumer group")
        self._engine = engine
        self._group = group
        self._clock = clock
        self._lock = threading.Lock()
        self._next_sweep = 0.0
        self.table = _consumed_table(table, sa.MetaData() if metadata is None else metadata)

    def create_table(self) -> None:
        """Make the table if it does not exist."""
        self.table.create(self._engine, checkfirst=True)

    @contextmanager
    def claim(self, keys: Sequence[str], window: float) -> Iterator[Claim]:
        """See :meth:`rmqtools.once.KeyStore.claim`.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: the database refuses; nothing of the batch was committed, unless
                the connection broke during the commit.
        """
        try:
            with self._engine.begin() as connection:
                _check_transactional(connection)
                claim = Claim(self._insert(connection, keys), arguments=(connection,))
                yield claim
                if not claim.done:
                    raise _NothingConsumed
                self._forget(connection, claim.new - claim.done)
        except _NothingConsumed:
            pass
        self._sweep(window)

    def new_messages(
        self, connection: sa.Connection, messages: Sequence[MessageExt], *, key: KeyFunction | None = None
    ) -> list[MessageExt]:
        """For a transaction of your own: remember messages on ``connection``; return the new ones.

        They count as consumed when you commit, and as not consumed when you roll back. Keys are removed only
        by :meth:`remove_older`.
        """
        by_key: dict[str, MessageExt] = {}
        for message in messages:
            by_key.setdefault(message_key(message, key), message)
        new = self._insert(connection, sorted(by_key))
        return [message for found, message in by_key.items() if found in new]

    def remove_older(self, window: float) -> int:
        """Remove this group's keys that are older than ``window`` seconds; return how many."""
        latest = self._clock.now_ms() // 1000 - window
        table = self.table
        old = sa.delete(table).where(table.c.consumer_group == self._group, table.c.seen_at < latest)
        with self._engine.begin() as connection:
            return connection.execute(old).rowcount

    def _insert(self, connection: sa.Connection, keys: Sequence[str]) -> frozenset[str]:
        """Insert sorted keys; return those that the table did not have."""
        if not keys:  # an INSERT without rows would be one of default values
            return frozenset()
        now = self._clock.now_ms() // 1000
        rows = [{"consumer_group": self._group, "message_key": key, "seen_at": now} for key in keys]
        if (insert := _INSERT.get(connection.dialect.name)) is None:
            pairs = zip(keys, rows, strict=True)
            return frozenset(key for key, row in pairs if self._insert_one(connection, row))
        statement = insert(self.table).values(rows).on_conflict_do_nothing()
        return frozenset(connection.scalars(statement.returning(self.table.c.message_key)))

    def _insert_one(self, connection: sa.Connection, row: dict[str, object]) -> bool:
        try:
            with connection.begin_nested():
                connection.execute(sa.insert(self.table), row)
        except IntegrityError:
            return False
        return True

    def _forget(self, connection: sa.Connection, keys: frozenset[str]) -> None:
        if keys:
            table = self.table
            connection.execute(
                sa.delete(table).where(
                    table.c.consumer_group == self._group, table.c.message_key.in_(sorted(keys))
                )
            )

    def _sweep(self, window: float) -> None:
        """Remove old keys now and then; one thread at a time."""
        now = self._clock.monotonic()
        with self._lock:
            if now < self._next_sweep:
                return
            self._next_sweep = now + max(_SHORTEST_SWEEP, window / _SWEEPS_PER_WINDOW)
        self.remove_older(window)


def _check_transactional(connection: sa.Connection) -> None:
    """Refuse connections that commit every statement: the keys would be stored before the effects."""
    of_engine = getattr(connection.dialect, "_on_connect_isolation_level", None)  # no public attribute has it
    level = connection.get_execution_options().get("isolation_level", of_engine)
    if level == "AUTOCOMMIT":
        raise ValueError(
            "the engine of SqlStore has isolation_level='AUTOCOMMIT': want one with transactions, "
            "engine.execution_options(isolation_level='READ COMMITTED')"
        )


def _consumed_table(name: str, metadata: sa.MetaData) -> sa.Table:
    return sa.Table(
        name,
        metadata,
        sa.Column("consumer_group", sa.String(255), primary_key=True),
        sa.Column("message_key", sa.String(KEY_LENGTH), primary_key=True),
        sa.Column("seen_at", sa.BigInteger, nullable=False, index=True),
    )
