"""The smoke set on every version of the servers, and its table in docs/compatibility.md."""

import pytest

pytest.register_assert_rewrite("tests.versions.features")  # not a test module, but its asserts must say why
