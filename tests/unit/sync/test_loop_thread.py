"""The loop thread."""

import pytest

from rmqtools.sync.loop_thread import LoopThread


def test_a_loop_that_cannot_be_made_is_an_error_of_the_call_that_needs_it(monkeypatch):
    def refuse() -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("rmqtools.sync.loop_thread.new_loop", refuse)

    with pytest.raises(OSError, match="Too many open files"):
        LoopThread()._start()
