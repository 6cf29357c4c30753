"""A query is stopped at its end, seen from its progress."""

import json

import pytest

from rmqtools import MessageQueue
from rmqtools.errors import ConfigError
from spark_connector.progress.ending import is_at_end, stop_at_end
from spark_connector.read.stream_offsets import StreamOffsets

A = MessageQueue("T", "a", 0)


def source(end, latest, **more):
    return {
        "endOffset": json.dumps(StreamOffsets({A: end}).to_json()),
        "latestOffset": json.dumps(StreamOffsets({A: latest}).to_json() | more),
    }


OTHER = {"endOffset": "3", "latestOffset": "9"}


@pytest.mark.parametrize(
    ("sources", "is_there"),
    [
        pytest.param([source(7, 7, final=True)], True, id="read-to-its-end"),
        pytest.param([source(9, 7, final=True)], True, id="past-its-end"),
        pytest.param([source(6, 7, final=True)], False, id="messages-left"),
        pytest.param([source(7, 7, final=False)], False, id="more-may-come"),
        pytest.param([source(7, 7, final=True), source(6, 7, final=True)], False, id="one-of-two"),
        pytest.param([source(7, 7, final=True), OTHER], True, id="other-sources-do-not-count"),
        pytest.param([OTHER], False, id="no-source-of-ours"),
    ],
)
def test_a_query_is_at_its_end_when_all_its_sources_are(sources, is_there):
    assert is_at_end({"sources": sources}) is is_there


def test_a_query_without_an_end_is_refused():
    with pytest.raises(ConfigError, match="set option 'endingOffsets' or 'endingTimestamp'"):
        is_at_end({"sources": [source(7, 7)]})


class Query:
    """A query as far as it is looked at."""

    def __init__(self, *progress, ends=False) -> None:
        self.progress = list(progress)
        self.ends = ends
        self.is_stopped = False

    def awaitTermination(self, timeout):
        return self.ends

    @property
    def lastProgress(self):
        return self.progress.pop(0) if len(self.progress) > 1 else self.progress[0]

    def stop(self):
        self.is_stopped = True


def test_the_query_is_stopped_when_it_is_at_its_end():
    query = Query(None, {"sources": [source(6, 7, final=True)]}, {"sources": [source(7, 7, final=True)]})

    assert stop_at_end(query)
    assert query.is_stopped


def test_a_query_that_ends_by_itself_needs_no_stop():
    query = Query(None, ends=True)

    assert stop_at_end(query)
    assert not query.is_stopped


def test_when_the_time_is_over_the_query_goes_on():
    query = Query({"sources": [source(6, 7, final=True)]})

    assert not stop_at_end(query, timeout=0)
    assert not query.is_stopped
