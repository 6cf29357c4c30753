"""Messages and contexts as a listener gets them, stores of every kind, and a listener with effects."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import fakeredis
import sqlalchemy as sa

from rmqtools import ConsumeContext, MessageExt, MessageQueue
from rmqtools.once import KeyStore, MemoryStore, RedisStore, SqlStore
from rmqtools.testing import stored_message

EFFECTS = sa.Table("effects", sa.MetaData(), sa.Column("body", sa.LargeBinary))


def message(number: int, *, unique: str | None = None, **properties: str) -> MessageExt:
    named = {"UNIQ_KEY": unique or f"unique-{number}", **properties}
    return stored_message("Orders", number, properties=named, offset_msg_id=f"offset-{number}")


def context(*, orderly: bool = False) -> ConsumeContext:
    return ConsumeContext(MessageQueue("Orders", "broker-a", 0), is_orderly=orderly)


def sqlite_engine(path: Path) -> sa.Engine:
    return sa.create_engine(f"sqlite:///{path}", connect_args={"timeout": 60})


def savepoint_engine(path: Path) -> sa.Engine:
    """SQLite whose driver leaves transactions to SQLAlchemy, as savepoints need."""
    engine = sqlite_engine(path)
    sa.event.listen(engine, "connect", lambda connection, _: setattr(connection, "isolation_level", None))
    sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def book(messages: list[MessageExt], context: ConsumeContext | None, connection: sa.Connection) -> None:
    """A listener whose effects are in the database."""
    connection.execute(sa.insert(EFFECTS), [{"body": each.body} for each in messages])


def effects(engine: sa.Engine) -> list[bytes]:
    with engine.connect() as connection:
        return list(connection.scalars(sa.select(EFFECTS.c.body)))


@contextmanager
def sql_store(engine: sa.Engine, **settings: Any) -> Iterator[SqlStore]:
    store = SqlStore(engine, group="billing", **settings)
    store.create_table()
    yield store
    engine.dispose()


@contextmanager
def memory_store(_: Path) -> Iterator[KeyStore]:
    yield MemoryStore()


@contextmanager
def redis_store(_: Path) -> Iterator[KeyStore]:
    yield RedisStore(fakeredis.FakeRedis(), group="billing")


STORES: dict[str, Callable[[Path], AbstractContextManager[KeyStore]]] = {
    "memory": memory_store,
    "redis": redis_store,
    "sql": lambda path: sql_store(sqlite_engine(path / "keys.db")),
    "savepoints": lambda path: sql_store(savepoint_engine(path / "keys.db")),
}
