import importlib
import sys

import pytest

import rmqtools.otel


def test_without_opentelemetry_the_error_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)

    with pytest.raises(ImportError, match=r"needs opentelemetry-api: pip install 'rmqtools\[otel\]'"):
        importlib.reload(rmqtools.otel)
