"""A store of every kind."""

import pytest

from tests.unit.once.listening import STORES


@pytest.fixture(params=STORES)
def store(request, tmp_path, monkeypatch):
    """Each kind of store; ``savepoints`` is the SQL store on a database without ON CONFLICT."""
    if request.param == "savepoints":
        monkeypatch.setattr("rmqtools.once.sql_store._INSERT", {})
    with STORES[request.param](tmp_path) as store:
        yield store
