"""The SQL store on SQLite: keys and effects in one transaction."""

import sys

import pytest
import sqlalchemy as sa

import rmqtools.once
from rmqtools import ConsumeConcurrentlyStatus
from rmqtools.once import SqlStore, deduplicate
from tests.unit.once.listening import EFFECTS, book, context, effects, message, sqlite_engine


@pytest.fixture
def engine(tmp_path):
    engine = sqlite_engine(tmp_path / "effects.db")
    EFFECTS.create(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def store(engine, clock):
    store = SqlStore(engine, group="billing", clock=clock)
    store.create_table()
    return store


def test_a_listener_that_fails_after_its_effects_leaves_nothing(engine, store):
    def fail(messages, context, connection):
        book(messages, context, connection)
        return ConsumeConcurrentlyStatus.RECONSUME_LATER

    deduplicate(store, fail)([message(1)], context())

    assert effects(engine) == []
    with store.claim(["a"], 60) as claim:
        assert claim.new == {"a"}


def test_there_is_nothing_new_among_no_messages(engine, store):
    with engine.begin() as connection:
        assert store.new_messages(connection, []) == []


def test_new_messages_takes_part_in_the_users_own_transaction(engine, store):
    with engine.begin() as connection:
        new = store.new_messages(connection, [message(1), message(2), message(3, unique="unique-1")])
        book(new, None, connection)
    with engine.connect() as connection:
        assert store.new_messages(connection, [message(1), message(4)]) == [message(4)]
        connection.rollback()
    with engine.connect() as connection:
        assert store.new_messages(connection, [message(4)]) == [message(4)]

    assert effects(engine) == [b"1", b"2"]


def test_keys_older_than_the_window_are_removed_in_passing(engine, store, clock):
    listener = deduplicate(store, book, window=1000)
    listener([message(1)], context())
    clock.advance(990)
    listener([message(1)], context())
    clock.advance(200)
    listener([message(2)], context())  # removes the key of message 1
    listener([message(1)], context())

    assert effects(engine) == [b"1", b"2", b"1"]


def test_removing_old_keys_leaves_those_inside_the_window(engine, store, clock):
    listener = deduplicate(store, book, window=1000)
    listener([message(1)], context())
    clock.advance(990)
    listener([message(2)], context())  # removes old keys
    listener([message(1)], context())

    assert effects(engine) == [b"1", b"2"]


def test_an_engine_without_transactions_is_refused(engine):
    for each in (
        engine.execution_options(isolation_level="AUTOCOMMIT"),
        sa.create_engine(engine.url, isolation_level="AUTOCOMMIT"),
    ):
        with pytest.raises(ValueError, match="AUTOCOMMIT"), SqlStore(each, group="g").claim(["a"], 60):
            pass
        each.dispose()


def test_something_else_than_an_engine_is_refused():
    with pytest.raises(TypeError, match=r"want a sqlalchemy\.Engine"):
        SqlStore("sqlite://", group="g")  # type: ignore[arg-type]  # the mistake


def test_the_table_has_the_users_name_and_metadata(engine):
    metadata = sa.MetaData()

    SqlStore(engine, group="g", table="seen", metadata=metadata)

    assert [*metadata.tables] == ["seen"]


def test_without_sqlalchemy_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    monkeypatch.delitem(sys.modules, "rmqtools.once.sql_store")

    with pytest.raises(ImportError, match=r"needs SQLAlchemy: pip install 'rmqtools\[sql\]'"):
        _ = rmqtools.once.SqlStore
