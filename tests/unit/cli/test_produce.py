"""``rmqtools produce`` on the cluster in this process."""

import base64
import fcntl
import io
import json
import os
from collections import Counter

import pyarrow
import pyarrow.parquet as parquet_files
import pytest

from rmqtools.cli.input_messages import Template, messages_of_json, read_chunks
from rmqtools.errors import ConfigError
from rmqtools.model.codes import RequestCode, ResponseCode


@pytest.fixture
def topic(cluster, request):
    name = f"t{abs(hash(request.node.name))}"
    cluster.create_topic(name, queues=1, broker_names=["broker-a"])
    return name


def bodies(cluster, topic):
    return [message.body for message in cluster.messages(topic)]


def test_every_line_is_a_message_and_the_summary_counts_them(run, cluster, topic):
    done = run(
        "produce", topic, "--tags", "new", "-k", "k1", "--property", "color=red", stdin="one\ntwo\r\n\nthree"
    )

    (first, *_) = cluster.messages(topic)
    assert bodies(cluster, topic) == [b"one", b"two", b"three"]
    assert (first.tags, first.keys, first.properties["color"]) == ("new", "k1", "red")
    assert done.stdout.startswith(f"3 messages stored in {topic}, ")
    assert "p50" in done.stdout
    summary, header, *rows = done.stdout.splitlines()
    assert summary.endswith(" ms, 0 of unknown outcome, 0 not stored")
    assert header.split() == ["MESSAGE", "ID", "QUEUE", "OFFSET"]
    ids = [message.properties["UNIQ_KEY"] for message in cluster.messages(topic)]
    assert [row.split() for row in rows] == [[id_, "broker-a:0", str(n)] for n, id_ in enumerate(ids)]


@pytest.mark.parametrize(
    ("options", "written"),
    [
        (("--delay-level", "3"), r"DELAY\x013"),
        (("--delay", "90"), r"TIMER_DELAY_MS\x0190000"),
        (("--sharding-key", "customer-7"), r"__SHARDINGKEY\x01customer-7"),
    ],
)
def test_options_of_delay_and_order_are_properties_of_each_message(run, cluster, topic, options, written):
    run("produce", topic, *options, stdin="x\n")

    requests = cluster.requests(topic=topic)
    assert any(written in f"{each.ext_fields}{each.body!r}" for each in requests)


def test_more_than_ten_messages_are_named_if_it_is_asked_for(run, topic):
    lines = "\n".join(map(str, range(11)))

    assert len(run("produce", topic, stdin=lines).stdout.splitlines()) == 1
    assert len(run("produce", topic, "--ids", stdin=lines).stdout.splitlines()) == 13
    named = json.loads(run("produce", topic, "--ids", "--json", stdin=lines).stdout)["messages"]
    assert [message["queue_offset"] for message in named] == [*range(22, 33)]


def test_lines_that_come_together_go_to_all_queues(run, cluster):
    cluster.create_topic("four", queues=2)

    run("produce", "four", stdin="".join(f"{n}\n" for n in range(1000)))

    places = [(message.broker_name, message.queue_id) for message in cluster.messages("four")]
    assert sorted(Counter(places).values()) == [250] * 4


def test_a_topic_that_is_not_there_is_made_if_it_is_asked_for(run, cluster):
    run("produce", "new", "--create", stdin="x\n")

    assert bodies(cluster, "new") == [b"x"]


def test_json_lines_have_what_the_options_do_not(run, cluster, topic):
    lines = [
        {"body": "text", "tags": "a", "keys": ["x", "y"], "properties": {"p": "1"}},
        {"body_base64": base64.b64encode(b"\x00\xff").decode(), "sharding_key": "s"},
        {"body": {"nested": 1}},
    ]
    text = "\n".join(map(json.dumps, lines))

    run("produce", topic, "--format", "json", "--tags", "default", stdin=text)

    first, second, third = cluster.messages(topic)
    assert (first.body, first.tags, first.keys, first.properties["p"]) == (b"text", "a", "x y", "1")
    assert (second.body, second.properties["__SHARDINGKEY"]) == (b"\x00\xff", "s")
    assert (third.body, third.tags) == (b'{"nested": 1}', "default")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("[1]", "line 2: want an object with 'body', not 1"),
        ("{]", "line 2: Expecting property name"),
        ("{", "line 2: the JSON that begins here does not end"),
        ('{"tags":"a"}', "line 2: no 'body' and no 'body_base64'"),
        ('{"body":"a","tag":"x"}', r"line 2: unknown field 'tag' \(did you mean 'tags'\?\)"),
        ('{"body_base64":"?"}', "line 2: body_base64: "),
    ],
)
def test_a_json_line_that_is_no_message_is_named(line, words):
    chunks = [[b'{"body":"ok"}', line.encode()]]

    with pytest.raises(ConfigError, match=words):
        list(messages_of_json(chunks, Template(topic="t")))


@pytest.mark.parametrize("indent", [None, 2])
def test_json_may_go_over_lines_and_chunks_and_stand_in_arrays(indent):
    values = [{"body": 'a "{" in a text\\'}, [{"body": {"x": [1]}}, {"body": "c", "tags": "t"}]]
    lines = "\n\n".join(json.dumps(value, indent=indent) for value in values).encode().split(b"\n")
    chunks = [lines[:3], lines[3:]]

    made = [message for some in messages_of_json(chunks, Template(topic="t")) for message in some]

    assert [m.body for m in made] == [b'a "{" in a text\\', b'{"x": [1]}', b"c"]
    assert made[2].tags == "t"


def test_lines_are_whole_however_the_pipe_cuts_them():
    class Pipe(io.BufferedReader):
        def __init__(self, *parts):
            super().__init__(io.BytesIO())
            self.parts = iter(parts)

        def read1(self, _=-1):
            return next(self.parts, b"")

    assert list(read_chunks(Pipe(b"a\nbc", b"d\n", b"e"))) == [[b"a"], [b"bcd"], [b"e"]]


@pytest.mark.skipif(not hasattr(fcntl, "F_GETPIPE_SZ"), reason="only Linux can tell")
def test_the_writer_of_a_pipe_goes_on_while_lines_are_sent():
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as pipe:
        with os.fdopen(writer, "wb") as lines:
            lines.write(b"a\n")
        assert next(read_chunks(pipe)) == [b"a"]
        assert fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ) == 1024 * 1024


def test_a_message_that_is_refused_ends_it_with_exit_code_1(run, cluster, topic):
    refused = ResponseCode.MESSAGE_ILLEGAL
    cluster.fault(code=RequestCode.SEND_BATCH_MESSAGE, topic=topic, times=None, answer=refused)
    cluster.fault(code=RequestCode.SEND_MESSAGE_V2, topic=topic, times=None, answer=refused)

    done = run("produce", topic, "--json", stdin="one\n")

    summary = json.loads(done.stdout)
    assert (done.exit_code, summary["stored"], summary["failed"]) == (1, 0, 1)
    assert done.stderr.startswith("error: ")


@pytest.mark.process
def test_messages_without_an_answer_are_of_unknown_outcome(run, cluster, topic):
    cluster.fault(code=RequestCode.SEND_MESSAGE_V2, topic=topic, times=None, answer=None)
    cluster.fault(code=RequestCode.SEND_BATCH_MESSAGE, topic=topic, times=None, answer=None)

    done = run("produce", topic, "--json", "--set", "send_timeout=0.3", stdin="one\n")

    assert (done.exit_code, json.loads(done.stdout)["unknown"]) == (1, 1)


@pytest.mark.process
def test_a_rate_is_kept(run, cluster, topic):
    done = run("produce", topic, "--rate", "20", "--json", stdin="1\n2\n3\n4\n5\n")

    assert json.loads(done.stdout)["seconds"] >= 0.15
    assert len(bodies(cluster, topic)) == 5


def test_rows_of_a_parquet_or_csv_file_are_sent(run, cluster, topic, tmp_path):
    parquet, csv = tmp_path / "rows.parquet", tmp_path / "rows.csv"
    parquet_files.write_table(pyarrow.table({"body": [b"p1", b"p2"], "tags": ["a", None]}), parquet)
    csv.write_text("body,keys\nc1,k1\n")

    shown = run("produce", topic, "--format", "parquet", "-f", parquet, "--json").stdout
    run("produce", topic, "--format", "csv", "-f", csv)

    assert bodies(cluster, topic) == [b"p1", b"p2", b"c1"]
    assert json.loads(shown)["stored"] == 2
    assert cluster.messages(topic)[2].keys == "k1"
