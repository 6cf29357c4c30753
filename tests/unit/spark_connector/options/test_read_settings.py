"""What options become for a read."""

import pickle

import pytest

from rmqtools import MessageQueue
from spark_connector.options.columns import COLUMNS
from spark_connector.options.offsets import Bound, Times
from spark_connector.options.option_table import parse_options
from spark_connector.options.read_settings import read_options
from spark_connector.options.selection import Assign, TopicPattern, Topics
from tests.support.spark_options import batch_of, read_of

QUEUE = MessageQueue("T", "a", 0)
TIME = 1_700_000_000_000
TIMES = f'{{"T":{{"a":{{"0":{TIME}}}}}}}'


def test_the_least_there_is_to_say_reads_everything():
    batch = batch_of()

    assert batch.read.client.name_servers == ("h:1",)
    assert batch.read.selection == Topics(("T",))
    assert (batch.start, batch.end) == (
        Bound("startingOffsets", "earliest"),
        Bound("endingOffsets", "latest"),
    )
    assert (batch.read.min_partitions, batch.read.max_records_per_partition) == (None, None)
    assert (batch.read.tags, batch.read.sql, batch.read.allocation) == ((), None, None)
    assert batch.read.columns == COLUMNS


def test_every_option_arrives():
    given = {
        "startingoffsets": '{"T":{"a":{"0":3}}}',
        "endingoffsets": '{"T":{"a":{"0":-1}}}',
        "minpartitions": "16",
        "maxrecordsperpartition": "1000",
        "tags": "a || b||a",
        "group": "g",
        "groupoffsetfallback": "Error",
        "failondataloss": "FALSE",
        "includeproperties": "false",
        "offsetmsgid": "true",
        "startingoffsetsbytimestampstrategy": "latest",
    }
    batch = batch_of(**given)
    read = batch.read

    assert (batch.start.spec, batch.end.spec) == ({QUEUE: 3}, {QUEUE: -1})
    assert (read.min_partitions, read.max_records_per_partition) == (16, 1000)
    assert (read.tags, read.group, read.group_offset_fallback) == (("a", "b"), "g", "error")
    assert not read.fail_on_data_loss
    assert read.columns == (*(name for name in COLUMNS if name != "properties"), "offsetMsgId")
    assert read.when_none_after == "latest"


@pytest.mark.parametrize(
    ("given", "selection"),
    [
        pytest.param({"topics": "Orders, Returns"}, Topics(("Orders", "Returns")), id="topics"),
        pytest.param({"topicpattern": "O.*"}, TopicPattern("O.*"), id="pattern"),
        pytest.param({"assign": '{"T":{"a":[0]}}'}, Assign(frozenset({QUEUE})), id="assign"),
    ],
)
def test_what_is_read_is_given_in_four_ways(given, selection):
    assert read_of(topic=None, **given).selection == selection


@pytest.mark.parametrize(
    ("given", "bound"),
    [
        pytest.param({}, None, id="nothing-said"),
        pytest.param({"startingoffsets": "latest"}, Bound("startingOffsets", "latest"), id="offsets"),
        pytest.param(
            {"startingoffsets": "latest", "startingoffsetsbytimestamp": TIMES},
            Bound("startingOffsetsByTimestamp", Times({QUEUE: TIME})),
            id="times-before-offsets",
        ),
        pytest.param(
            {"startingtimestamp": "1700000000007", "startingoffsetsbytimestamp": TIMES},
            Bound("startingTimestamp", Times(TIME + 7)),
            id="one-time-before-times",
        ),
    ],
)
def test_of_several_starts_the_order_is_that_of_sparks_kafka_source(given, bound):
    assert read_of(**given).start == bound


def test_of_several_ends_the_order_is_the_same():
    ends = {"endingoffsets": "latest", "endingoffsetsbytimestamp": TIMES}

    assert batch_of(**ends).end == Bound("endingOffsetsByTimestamp", Times({QUEUE: TIME}))
    assert batch_of(**ends, endingtimestamp="1700000000007").end == Bound("endingTimestamp", Times(TIME + 7))


def test_the_read_group_is_a_setting_of_the_reading_clients():
    assert read_of().client.read_group is None
    assert read_of(readgroup="analysts").client.read_group == "analysts"


@pytest.mark.parametrize("text", ["*", " * "])
def test_a_star_means_all_tags(text):
    assert read_of(tags=text).tags == ()


def test_times_without_zone_are_in_the_one_given():
    given = {"startingtimestamp": "1970-01-02T00:00", "timezone": "+01:00"}

    assert read_of(**given).start == Bound("startingTimestamp", Times(23 * 3600_000))


def test_an_end_may_be_still_to_come():
    assert batch_of(endingtimestamp="99999999999999").end.spec == Times(99999999999999)


def test_readers_are_counted_or_named():
    counted, named = read_of(readers="2"), read_of(readerids="10.0.0.1@a,10.0.0.2@b")

    assert counted.allocation.ids_at("10.0.0.9") == ("10.0.0.9@reader-0", "10.0.0.9@reader-1")
    assert named.allocation.ids_at("10.0.0.9") == ("10.0.0.1@a", "10.0.0.2@b")
    assert named.allocation.readers == 2


def test_settings_of_the_strategy_arrive_whatever_their_case():
    allocation = read_of(
        **{
            "readers": "1",
            "allocator": "PINNED_BY_IP",
            "allocator.ips": "10.0.0.1,10.1.0.0/16",
            "allocator.whenabsent": "everybody",
            "allocator.verifyhost": "warn",
        }
    ).allocation

    assert allocation.strategy.ips == ("10.0.0.1", "10.1.0.0/16")
    assert allocation.strategy.when_absent == "everybody"
    assert allocation.verify_host


def test_options_travel_between_processes():
    options = {"nameServer": "h:1", "topic": "T", "tags": "a", "startingTimestamp": "0"}
    given = parse_options(options | {"readers": "3", "groupOffsetFallback": "latest"})

    assert read_options(pickle.loads(pickle.dumps(given))) == read_options(given)
    assert pickle.loads(pickle.dumps(read_options(given))) == read_options(given)
