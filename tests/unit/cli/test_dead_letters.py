import base64
from dataclasses import replace

import pytest

from rmqtools import Message, MessageExt, MessageQueue, QueueRange
from rmqtools.cli.dead_letters import Progress, ProgressFile, as_row, default_progress, replayed
from rmqtools.cli.dlq import still_to_send
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.model.copy_message import origin_topic
from rmqtools.testing import stored_message

LETTER = stored_message(
    "%DLQ%g",
    5,
    body=b"\x00\xff",
    properties={
        "RETRY_TOPIC": "orders",
        "UNIQ_KEY": "0A",
        "TAGS": "new",
        "KEYS": "k1 k2",
        "__SHARDINGKEY": "s",
        "color": "красный",
        "DELAY": "0",
        "REAL_TOPIC": "%RETRY%g",
        "RMQTOOLS_MARK": "5 w ",  # a copy with it would count as stored by the appender
        "RMQTOOLS_WAY": "east/orders",
    },
    flag=7,
    reconsume_times=16,
    broker_name="a",
)

QUEUE = MessageQueue("%DLQ%g", "a", 0)


def with_properties(**properties: str) -> MessageExt:
    return replace(LETTER, properties=properties)


def test_a_letter_goes_back_as_it_was_without_what_rocketmq_added():
    assert replayed(LETTER, None, None) == Message(
        "orders",
        b"\x00\xff",
        tags="new",
        keys="k1 k2",
        properties={"color": "красный"},
        flag=7,
        sharding_key="s",
    )


def test_another_topic_wins_and_the_namespace_of_the_origin_is_the_clients():
    assert replayed(LETTER, "other", None).topic == "other"
    assert replayed(with_properties(RETRY_TOPIC="ns%orders"), None, "ns").topic == "orders"


@pytest.mark.parametrize(
    ("properties", "origin"),
    [
        ({"RETRY_TOPIC": "T"}, "T"),
        ({"RETRY_TOPIC": "%RETRY%g_T", "DLQ_ORIGIN_TOPIC": "T"}, "T"),
        ({"RETRY_TOPIC": "%RETRY%g_T"}, None),
        ({}, None),
    ],
)
def test_where_a_letter_came_from(properties, origin):
    assert origin_topic(with_properties(**properties)) == origin


def test_a_letter_without_origin_is_not_sent_anywhere_unless_told():
    with pytest.raises(RocketMQError, match=r"at offset 5 does not say .*: give --to-topic"):
        replayed(with_properties(), None, None)


def test_a_row_has_everything():
    row = as_row(LETTER)

    assert base64.b64decode(row["body_base64"]) == LETTER.body
    assert row["properties"] == {"color": "красный"}
    assert row["reserved_properties"]["RETRY_TOPIC"] == "orders"
    assert (row["topic"], row["broker_name"], row["queue_id"], row["queue_offset"]) == ("%DLQ%g", "a", 0, 5)
    assert (row["origin_topic"], row["msg_id"], row["reconsume_times"]) == ("orders", "0A", 16)
    assert all(name == name.lower() for name in row)


def test_progress_goes_on_where_it_was(tmp_path):
    path = tmp_path / "progress.json"
    progress = Progress("%DLQ%g")
    progress.note(LETTER)
    with ProgressFile(path) as file:
        file.write(progress)

    loaded = Progress.load(path, "%DLQ%g")
    assert loaded == progress
    assert loaded.rest_of(QueueRange(QUEUE, 0, 9)) == QueueRange(QUEUE, 6, 9)
    assert loaded.rest_of(QueueRange(QUEUE, 7, 9)) == QueueRange(QUEUE, 7, 9)
    assert loaded.rest_of(QueueRange(MessageQueue("%DLQ%g", "b", 0), 0, 9)).begin == 0
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("end", [0, 30, 499])
def test_a_topic_that_was_made_anew_is_not_taken_for_one_that_was_replayed(end):
    done = Progress("%DLQ%g", {"a:0": 500})

    words = (
        f"queue a:0 of %DLQ%g ends at offset {end}, before 500, .* made anew; give another --progress file"
    )
    with pytest.raises(ConfigError, match=words):
        still_to_send(done, [QueueRange(QUEUE, 0, end)])


@pytest.mark.parametrize(
    ("done", "stored", "left"),
    [
        pytest.param({"a:0": 500}, QueueRange(QUEUE, 0, 500), QueueRange(QUEUE, 500, 500), id="all-was-sent"),
        pytest.param({}, QueueRange(QUEUE, 520, 530), QueueRange(QUEUE, 520, 530), id="first-replay"),
    ],
)
def test_a_replay_goes_on_where_it_was_without_a_warning(capsys, done, stored, left):
    assert still_to_send(Progress("%DLQ%g", done), [stored]) == [left]
    assert capsys.readouterr().err == ""


def test_letters_that_expired_before_they_were_replayed_are_counted_in_a_warning(capsys):
    done = Progress("%DLQ%g", {"a:0": 500})

    assert still_to_send(done, [QueueRange(QUEUE, 520, 530)]) == [QueueRange(QUEUE, 520, 530)]
    assert "warning: 20 messages of queue a:0 of %DLQ%g expired before" in capsys.readouterr().err


def test_an_absent_file_is_a_replay_that_has_not_begun(tmp_path):
    (tmp_path / "empty").touch()  # a replay was killed before it noted anything

    assert Progress.load(tmp_path / "absent", "%DLQ%g") == Progress("%DLQ%g")
    assert Progress.load(tmp_path / "empty", "%DLQ%g") == Progress("%DLQ%g")


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"topic":"%DLQ%g","next":{"a:0":"x"}}', '{"topic":"T","next":{}}']
)
def test_a_file_that_says_something_else_is_refused(tmp_path, text):
    path = tmp_path / "progress.json"
    path.write_text(text)

    with pytest.raises(ConfigError, match="give another file"):
        Progress.load(path, "%DLQ%g")


def test_one_replay_at_a_time_uses_a_progress_file_also_after_it_was_written(tmp_path):
    path = tmp_path / "progress.json"

    with ProgressFile(path) as first:
        with pytest.raises(ConfigError, match=r"progress.json is in use by another replay.*wait until"):
            ProgressFile(path).__enter__()
        first.write(Progress("%DLQ%g", {"a:0": 5}))
        with pytest.raises(ConfigError, match="in use by another replay"):
            ProgressFile(path).__enter__()

    with ProgressFile(path):
        assert Progress.load(path, "%DLQ%g").next_offsets == {"a:0": 5}
    assert [one.name for one in tmp_path.iterdir()] == ["progress.json"]


def test_a_replay_that_noted_nothing_leaves_no_file(tmp_path):
    with ProgressFile(tmp_path / "progress.json"):
        pass

    assert list(tmp_path.iterdir()) == []


def test_a_progress_file_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "target").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "target")

    with pytest.raises(ConfigError, match="give --progress FILE, or --no-progress"):
        ProgressFile(tmp_path / "link").__enter__()
    assert (tmp_path / "target").read_text() == "mine"


def test_the_default_progress_file_is_one_for_a_topic_a_target_and_a_cluster(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    here = default_progress("%DLQ%g", "10.0.0.1:9876", None, "orders")

    assert here == default_progress("%DLQ%g", "10.0.0.1:9876", None, "orders")
    assert here.parent == tmp_path / "rmqtools" / "replay"
    assert here != default_progress("%DLQ%g", "10.0.0.1:9876", None, "other")
    assert here != default_progress("%DLQ%g", "10.0.0.2:9876", None, "orders")
