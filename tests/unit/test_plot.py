"""Pictures: what stands in the figures."""

import sys
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from rmqtools import MessageQueue
from rmqtools.plot import lag_figure, shares_figure, story_figure
from tests.unit.policy.test_message_story import begun, ended, found, pub, stored, story

pytestmark = pytest.mark.process  # it draws for seconds

QUEUES = [MessageQueue("orders", "broker-a", index) for index in range(4)]
NOW = dict(zip(QUEUES, (["x"], ["x"], ["y"], ["y"]), strict=True))
CIRCLE = dict(zip(QUEUES, (["x"], ["y"], ["x"], ["y"]), strict=True))
START = datetime(2026, 1, 31, 12, tzinfo=UTC)
TIMES = [START + timedelta(seconds=2 * index) for index in range(3)]


def cells(axis):
    return axis.images[0].get_array().tolist()


def test_each_strategy_has_a_panel_of_queues_and_members_and_marks_what_moves():
    now, same, circle = shares_figure({"AVG": NOW, "AVG_BY_CIRCLE": CIRCLE}, before=NOW).axes

    assert [axis.get_title() for axis in (now, same, circle)] == [
        "now",
        "AVG\n0 moved",
        "AVG_BY_CIRCLE\n2 moved",
    ]
    assert cells(same) == [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert cells(circle) == [[1, 0], [0, 2], [2, 0], [0, 1]]
    assert [text.get_text() for text in circle.get_xticklabels()] == ["x", "y"]
    assert [text.get_text() for text in now.get_yticklabels()] == [f"broker-a:{index}" for index in range(4)]
    assert len(circle.lines) == 2  # crosses, for readers without colours


def test_without_owners_now_nothing_moves():
    (axis,) = shares_figure({"AVG": NOW}).axes

    assert (axis.get_title(), len(axis.lines)) == ("AVG", 0)


def test_ten_thousand_queues_make_a_picture_of_a_size_that_can_be_opened():
    owners = {MessageQueue("t", "b", index): [f"m{index % 7}"] for index in range(10_000)}

    figure = shares_figure({"AVG": owners}, before=owners)

    assert max(figure.get_size_inches()) <= 40
    assert figure.axes[0].get_ylabel() == "10000 queues"


def test_lag_has_a_line_for_each_series_and_a_gap_where_it_is_unknown():
    (axis,) = lag_figure(TIMES, {"orders": [5, 3, 1], "audit": [0, None, 2]}, title="lag of g").axes

    assert [line.get_label() for line in axis.lines] == ["orders", "audit"]
    orders, audit = (np.asarray(line.get_ydata()) for line in axis.lines)
    assert orders.tolist() == [5, 3, 1]
    assert np.isnan(audit[1])
    assert axis.get_title() == "lag of g"


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="series 'orders' has 1 values, 3 times"):
        lag_figure(TIMES, {"orders": [1]})
    with pytest.raises(ValueError, match="no queues"):
        shares_figure({})


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    with pytest.raises(ImportError, match=r"pip install 'rmqtools\[plot\]'"):
        lag_figure(TIMES, {})


def test_names_of_strangers_are_labels_and_neither_formulas_nor_controls():
    owners = {MessageQueue("t", "b$x$\x1b", 0): ["10.0.0.1@$\\frac$\u202e"]}

    (axis,) = shares_figure({"AVG": owners}).axes
    (line,) = lag_figure(TIMES, {"a$\\bad$\n": [1, 2, 3]}, title="lag of $g$").axes

    labels = [text.get_text() for text in (*axis.get_xticklabels(), *axis.get_yticklabels(), line.title)]
    assert labels == [r"10.0.0.1@\$\frac\$\u202e", r"b\$x\$\x1b:0", r"lag of \$g\$"]
    assert line.lines[0].get_label() == r"a\$\bad\$\n"


@pytest.mark.process  # it draws
def test_a_picture_with_such_names_is_drawn(tmp_path):
    figure = lag_figure(TIMES, {"a$\\bad$\n": [1, 2, 3]}, title="lag of $\\g$")

    figure.savefig(tmp_path / "lag.svg")

    assert (tmp_path / "lag.svg").stat().st_size > 1000


def test_a_story_has_a_line_for_the_message_its_group_and_each_member():
    retry = stored("%RETRY%billing", 12_000, reconsume_times=1)
    records = found(pub(), begun(), ended(success=False), begun("r2", at_ms=13_000, times=1))
    told = story(copies=[stored(), retry], traces=records, retry_topics={"billing": ["%RETRY%billing"]})
    (axis,) = story_figure(told).axes

    assert [text.get_text() for text in axis.get_yticklabels()] == [
        "message",
        "billing: 10.0.0.5@411#7",
        "billing",
    ]
    assert {line.get_label() for line in axis.lines} == {
        "born",
        "sent",
        "stored",
        "retry",
        "delivered: failed",
        "delivered: result not known",
    }


def test_a_story_without_any_time_cannot_be_drawn():
    with pytest.raises(ValueError, match="no event of this message has a time"):
        story_figure(story())


def test_a_notebook_shows_the_figure_as_a_picture():
    shown = lag_figure([], {})._repr_png_()  # type: ignore[attr-defined]  # of a class for notebooks

    assert shown.startswith(b"\x89PNG")


def test_titles_stand_above_all_panels():
    figure = shares_figure({"AVG": NOW}, title="orders, group billing")

    assert figure.get_suptitle() == "orders, group billing"
