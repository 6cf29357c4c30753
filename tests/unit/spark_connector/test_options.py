"""The option table: names, values, errors."""

import pickle
from pathlib import Path

import pytest

import spark_connector
from rmqtools import MessageQueue
from rmqtools.errors import ConfigError
from spark_connector.options import OPTIONS, Where, describe_options, parse_options
from spark_connector.roles import read_options, write_options

TOPIC = {"topic": "T"}
SERVER = {"nameServer": "h:1"}
BOTH = SERVER | TOPIC
NEEDED = {"nameserver": "127.0.0.1:9876", "topic": "Orders"}


@pytest.fixture(autouse=True)
def _no_name_server_in_the_environment(monkeypatch):
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)


def refusal(role, **options):
    with pytest.raises(ConfigError) as found:
        role(parse_options(options))
    return str(found.value)


def test_the_least_there_is_to_say_reads_everything():
    options = read_options(parse_options(NEEDED))

    assert options.client.name_servers == ("127.0.0.1:9876",)
    assert options.topics == ("Orders",)
    assert (options.starting_offsets, options.ending_offsets) == ("earliest", "latest")
    assert (options.min_partitions, options.max_records_per_partition) == (None, None)


def test_every_read_option_arrives():
    given = NEEDED | {
        "topic": "T",
        "startingoffsets": '{"T":{"a":{"0":3}}}',
        "endingoffsets": '{"T":{"a":{"0":-1}}}',
        "minpartitions": "16",
        "maxrecordsperpartition": "1000",
    }
    options = read_options(parse_options(given))

    assert options.starting_offsets == {MessageQueue("T", "a", 0): 3}
    assert options.ending_offsets == {MessageQueue("T", "a", 0): -1}
    assert (options.min_partitions, options.max_records_per_partition) == (16, 1000)


def test_topics_are_a_list():
    given = {"nameServer": "h:1", "topics": "Orders, Returns"}

    assert read_options(parse_options(given)).topics == ("Orders", "Returns")


def test_a_write_may_leave_the_topic_to_its_rows():
    assert write_options(parse_options({"nameServer": "h:1"})).topic is None


def test_client_settings_arrive_by_option_and_by_prefix():
    given = NEEDED | {
        "namespace": "tenant",
        "accesskey": "alice",
        "secretkey": "s3cret",
        "brokeraddressmap": "10.0.0.5:10911=127.0.0.1:20911",
        "rocketmq.requesttimeout": "9.5",
        "tls.enable": "true",
        "tls.cafile": "/etc/ca.pem",
    }
    client = read_options(parse_options(given)).client

    assert (client.access_key, client.secret_key, client.request_timeout) == ("alice", "s3cret", 9.5)
    assert client.namespace == "tenant"
    assert (client.tls_enable, client.tls_ca_file) == (True, "/etc/ca.pem")
    assert client.broker_address_map == {"10.0.0.5:10911": "127.0.0.1:20911"}


def test_producer_settings_arrive_at_a_write_and_are_refused_at_a_read():
    given = NEEDED | {"rocketmq.sendtimeout": "7"}

    assert write_options(parse_options(given)).producer.send_timeout == 7.0
    assert "unknown setting 'sendtimeout'" in refusal(read_options, **given)


def test_sends_have_options_in_sparks_units():
    given = NEEDED | {"sendtimeoutms": "1500", "batchbytes": "1000"}
    producer = write_options(parse_options(given)).producer

    assert (producer.send_timeout, producer.max_batch_bytes) == (1.5, 1000)


def test_the_environment_may_name_the_name_server(monkeypatch):
    monkeypatch.setenv("NAMESRV_ADDR", "10.0.0.1:9876")

    assert read_options(parse_options({"topic": "T"})).client.name_servers == ("10.0.0.1:9876",)


def test_sparks_own_options_are_accepted_everywhere():
    given = NEEDED | {"path": "x", "checkpointLocation": "y"}

    assert read_options(parse_options(given)) == read_options(parse_options(NEEDED))
    assert write_options(parse_options(given)) == write_options(parse_options(NEEDED))


def test_parsed_options_travel_between_processes():
    given = parse_options(NEEDED | {"minPartitions": "3"})

    assert read_options(pickle.loads(pickle.dumps(given))) == read_options(given)


@pytest.mark.parametrize("name", ["startingOffset", "STARTINGOFFSET"])
def test_an_unknown_option_is_refused_with_the_nearest_name(name):
    assert f"unknown option '{name}'" in refusal(read_options, **{name: "earliest"})
    assert "did you mean 'startingOffsets'?" in refusal(read_options, **{name: "earliest"})


def test_an_option_like_no_other_is_refused_with_all_names():
    text = refusal(read_options, zzz="1")

    assert [option.name for option in OPTIONS if option.name not in text] == []


LATER = """
    topicPattern assign tags sql includeProperties startingTimestamp endingTimestamp
    startingOffsetsByTimestamp
    maxOffsetsPerTrigger pollInterval failOnDataLoss readers readerIds allocator asMember group
    commitOffsetsToGroup queueSelector stamp idColumn tls.
"""


@pytest.mark.parametrize("name", LATER.split())
def test_options_of_later_versions_are_unknown_not_ignored(name):
    assert "unknown option" in refusal(read_options, **{name: "1"})


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        pytest.param(
            "minPartitions", "0", "option 'minPartitions' = '0': want 1 or more", id="count-of-nothing"
        ),
        pytest.param("minPartitions", "many", "option 'minPartitions' = 'many'", id="count-no-number"),
        pytest.param("topics", "a,,b", "option 'topics' = 'a,,b': it is empty", id="empty-name-in-a-list"),
        pytest.param("topics", "a,a", "option 'topics' = 'a,a': a name is given twice", id="name-twice"),
        pytest.param("topic", " ", "option 'topic' = ' ': it is empty", id="empty-topic"),
        pytest.param(
            "startingOffsets", "{", "option 'startingOffsets' = '{': neither earliest", id="bad-json"
        ),
        pytest.param(
            "startingOffsets", "latest", "starts at the latest offset reads nothing", id="start-latest"
        ),
        pytest.param("startingOffsets", '{"T":{"a":{"0":-1}}}', "reads nothing", id="start-latest-in-json"),
        pytest.param(
            "endingOffsets", "earliest", "ends at the earliest offset reads nothing", id="end-earliest"
        ),
        pytest.param("endingOffsets", '{"T":{"a":{"0":-2}}}', "reads nothing", id="end-earliest-in-json"),
        pytest.param("nameServer", "", "option 'nameServer' = '': it is empty", id="empty-name-server"),
    ],
)
def test_a_value_that_is_none_is_refused_by_name_and_value(option, value, says):
    assert says in refusal(read_options, **{option: value})


@pytest.mark.parametrize(
    ("role", "options", "says"),
    [
        pytest.param(read_options, TOPIC, "option 'nameServer' is required", id="read-without-name-server"),
        pytest.param(write_options, TOPIC, "option 'nameServer' is required", id="write-without-name-server"),
        pytest.param(read_options, TOPIC | {"nameServer": "h"}, "option 'nameServer' = 'h'", id="no-port"),
        pytest.param(read_options, SERVER, "neither option 'topic' nor 'topics'", id="no-topic"),
        pytest.param(read_options, BOTH | {"topics": "U"}, "both 'topic' and 'topics'", id="two-ways"),
        pytest.param(
            read_options,
            BOTH | {"rocketmq.nameServer": "h:2"},
            "'nameServer' and 'rocketmq.nameServer' are the same",
            id="name-server-twice",
        ),
        pytest.param(
            write_options,
            BOTH | {"sendTimeoutMs": "1", "rocketmq.send_timeout": "2"},
            "'sendTimeoutMs' and 'rocketmq.send_timeout' are the same",
            id="setting-twice",
        ),
        pytest.param(
            write_options,
            BOTH | {"batchBytes": "0"},
            "option 'batchBytes' = '0': want 1 or more",
            id="no-bytes",
        ),
        pytest.param(
            read_options,
            BOTH | {"rocketmq.requestTimeou": "1"},
            "did you mean 'request_timeout'?",
            id="unknown-setting",
        ),
        pytest.param(
            write_options,
            BOTH | {"startingOffsets": "earliest"},
            "option 'startingOffsets' is for reads only",
            id="read-option-at-a-write",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(role, options, says):
    assert says in refusal(role, **options)


def test_secrets_are_in_no_error_and_no_representation():
    given = NEEDED | {"secretKey": "hunter2"}

    assert "hunter2" not in refusal(read_options, **given)  # the access key is missing
    assert "option 'secretKey' = ***: it is empty" in refusal(read_options, **NEEDED, secretKey=" ")
    assert "hunter2" not in repr(read_options(parse_options(given | {"accessKey": "alice"})))


def test_the_documentation_holds_every_option_and_its_default():
    text = describe_options()

    assert [option.name for option in OPTIONS if f"| `{option.name}` |" not in text] == []
    assert "| earliest |" in text
    assert {option.where for option in OPTIONS} >= {Where.BOTH, Where.READ, Where.SPARK}


def test_defaults_are_values_of_their_options():
    for option in OPTIONS:
        assert option.default is None or option.parse(option.default) is not None


def test_the_page_of_options_is_the_table():
    page = Path(spark_connector.__file__).with_name("OPTIONS.md")

    assert page.read_text() == describe_options(), f"write describe_options() into {page}"
