"""What every store owes, on real PostgreSQL and Redis servers."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from rmqtools.once import RedisStore, SqlStore
from tests.integration.databases import postgresql, redis_server
from tests.support.cluster_scene import wait_until
from tests.support.patience import PATIENCE
from tests.unit.once.test_key_store import (  # noqa: F401 - the same tests
    test_a_block_that_raises_leaves_its_keys_new,
    test_keys_that_are_done_are_neither_new_nor_busy,
    test_of_members_that_claim_a_key_at_once_one_gets_it,
)

pytestmark = pytest.mark.slow


@pytest.fixture(params=["postgresql", "redis"])
def store(request, tmp_path):
    if request.param == "redis":
        with redis_server(tmp_path) as client:
            yield RedisStore(client, group="billing")
        return
    with postgresql(tmp_path) as engine:
        store = SqlStore(engine, group="billing")
        store.create_table()
        yield store


@pytest.mark.parametrize(("is_done", "found"), [(True, frozenset()), (False, frozenset({"key"}))])
def test_a_key_of_an_open_transaction_is_waited_for(tmp_path, is_done, found):
    with postgresql(tmp_path) as engine, ThreadPoolExecutor() as threads:
        store = SqlStore(engine, group="billing")
        store.create_table()
        with store.claim(["key"], 60) as first:
            second = threads.submit(_new_keys, store)
            wait_until(lambda: _waiting(engine) == 1)
            assert not second.done()
            if is_done:
                first.done |= first.new

        assert second.result(PATIENCE) == found


def _new_keys(store: SqlStore) -> frozenset[str]:
    with store.claim(["key"], 60) as claim:
        return claim.new


def _waiting(engine: sa.Engine) -> int:
    waiting = sa.text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    with engine.connect() as connection:
        return connection.scalar(waiting)
