"""Nothing that Spark's session fixture lists is seen by these tests, in whatever process they run."""

import pytest


@pytest.fixture(autouse=True)
def no_listed_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RMQTOOLS_SPARK_PLUG_INS", raising=False)
