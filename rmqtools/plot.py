"""Pictures as matplotlib figures, for notebooks and files: shares of queues, lag over time, a message's life.

    figure = shares_figure({"AVG": {queue: ["10.0.0.1@a"], ...}, "AVG_BY_CIRCLE": {...}}, before={...})
    figure.savefig("shares.svg")

Needs the extra ``plot``. The figures belong to no window; as the last value of a cell, a notebook shows them.
The commands ``rmqtools allocate``, ``group watch`` and ``message story`` save the same with ``--plot``.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING

from rmqtools.model.message_story import MessageStory, StoryEvent, StoryEventKind
from rmqtools.model.queue import MessageQueue, queue_name
from rmqtools.visible_text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Owners", "lag_figure", "shares_figure", "story_figure"]

Owners = Mapping[MessageQueue, Sequence[str]]
"""Each queue's owners; normally one."""

_NOT_OWNED, _KEPT, _MOVED = 0, 1, 2
_COLOURS = ("#f2f2f2", "#1f77b4", "#ff7f0e")  # of these three
_NAMED_QUEUES = 64  # up to so many, each has its name and its cross
_LAST_MS = 253_402_300_799_999  # of the year 9999
_MESSAGE_LANE = "message"
_FAILURE = "#d62728"
_RESULTS = {"success": "#2ca02c", "result not known": "#7f7f7f"}  # colours of listener calls
_MARKS = {  # of events that have no duration
    StoryEventKind.BORN: ("o", "#1f77b4"),
    StoryEventKind.SENT: (">", "#1f77b4"),
    StoryEventKind.WAITS: ("d", "#ff7f0e"),
    StoryEventKind.STORED: ("s", "#1f77b4"),
    StoryEventKind.DECIDED: ("P", "#9467bd"),
    StoryEventKind.SENT_BACK: ("<", "#ff7f0e"),
    StoryEventKind.RETRY: ("^", "#ff7f0e"),
    StoryEventKind.DEAD_LETTER: ("X", "black"),
}
_ROW_INCHES, _COLUMN_INCHES, _MAX_INCHES = 0.22, 0.45, 40.0


def shares_figure(shares: Mapping[str, Owners], *, before: Owners | None = None, title: str = "") -> "Figure":
    """Draw queues by members for each strategy, side by side; moved queues are orange, with a cross.

    Args:
        shares: the owners of the queues by strategy; all with the same queues.
        before: the owners now, drawn first; a queue with others in ``shares`` has moved. None: nothing moves.
        title: above all panels.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: there is nothing to draw.
    """
    panels = ({"now": before} if before else {}) | dict(shares)
    queues = list(next(iter(panels.values()), ()))
    if not queues:
        raise ValueError("shares_figure: no queues: give the owners of at least one queue")
    ids = sorted({owner for owners in panels.values() for each in owners.values() for owner in each})
    width = min(len(panels) * (_COLUMN_INCHES * len(ids) + 1.5) + 2, _MAX_INCHES)
    figure = _figure(width, min(_ROW_INCHES * len(queues) + 2.5, _MAX_INCHES))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, (name, owners) in zip(axes, panels.items(), strict=True):
        _draw_shares(axis, name, owners, ids, queues, before)
    if title:
        figure.suptitle(_label(title))
    if len(queues) <= _NAMED_QUEUES:
        one_topic = len({queue.topic for queue in queues}) == 1
        axes[0].set_yticks(range(len(queues)), [_queue_name(queue, one_topic=one_topic) for queue in queues])
    else:
        axes[0].set_ylabel(f"{len(queues)} queues")
    return figure


def lag_figure(
    times: Sequence[datetime], lags: Mapping[str, Sequence[int | None]], *, title: str = ""
) -> "Figure":
    """Draw lag over time, a line for each series, e.g. each topic of a group.

    Args:
        times: when it was looked at.
        lags: by name, a value for each time; None leaves a gap.
        title: above the picture.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: a series has another length than ``times``.
    """
    for name, values in lags.items():
        if len(values) != len(times):
            raise ValueError(f"lag_figure: series {name!r} has {len(values)} values, {len(times)} times")
    figure = _figure(9, 4.5)
    axis = figure.subplots()
    for name, values in lags.items():
        shown = [float("nan") if value is None else value for value in values]
        axis.plot(times, shown, marker="." if len(times) < 100 else "", label=_label(name))  # type: ignore[arg-type]
    axis.set_ylim(bottom=0)
    axis.set_ylabel("messages not consumed yet")
    axis.set_xlabel("time (UTC)")
    axis.set_title(_label(title))
    axis.grid(alpha=0.3)
    if lags:
        axis.legend()
    figure.autofmt_xdate()
    return figure


def story_figure(story: MessageStory) -> "Figure":
    """Draw a message's life over time: a line for the message, for each group, and for each member.

    A bar is a listener call: green for success, red for failure, grey where the result is not known.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: no event has a time.
    """
    events = [event for event in story.events if _is_time(event.at_ms)]
    if not events:
        raise ValueError("story_figure: no event of this message has a time")
    lanes = list(dict.fromkeys([_MESSAGE_LANE, *map(_lane, events)]))
    figure = _figure(12, min(0.4 * len(lanes) + 2, _MAX_INCHES))
    axis = figure.subplots()
    _draw_events(axis, events, lanes)
    _draw_deliveries(axis, story, lanes)
    axis.set_yticks(range(len(lanes)), [_label(lane) for lane in lanes])
    axis.set_ylim(len(lanes) - 0.5, -0.7)
    axis.set_xlabel("time (UTC)")
    axis.grid(axis="x", alpha=0.3)
    figure.suptitle(_label(f"message {story.msg_id} of topic {story.topic}"))
    figure.legend(loc="outside lower center", ncols=5, frameon=False)
    return figure


def _draw_events(axis: "Axes", events: Sequence[StoryEvent], lanes: Sequence[str]) -> None:
    for kind, (marker, colour) in _MARKS.items():
        of_kind = [event for event in events if event.kind is kind]
        if of_kind:
            times = [_at(event.at_ms or 0) for event in of_kind]
            heights = [lanes.index(_lane(event)) for event in of_kind]
            axis.plot(times, heights, marker, color=colour, label=kind.value, linestyle="")  # type: ignore[arg-type]


def _draw_deliveries(axis: "Axes", story: MessageStory, lanes: Sequence[str]) -> None:
    """Draw a bar for each call; short ones are marked by a point, or they could not be seen."""
    named: set[str] = set()
    for group in story.groups:
        for delivery in group.deliveries:
            began = delivery.began_ms if delivery.began_ms is not None else delivery.ended_ms
            ended = (began or 0) + round((delivery.seconds or 0) * 1000)
            if began is None or not (_is_time(began) and _is_time(ended)):
                continue
            result = delivery.result or "result not known"
            colour = _RESULTS.get(result, _FAILURE)
            height = lanes.index(f"{group.group}: {delivery.client.name}")
            label = "" if result in named else f"delivered: {result}"
            named.add(result)
            times = [_at(began), _at(ended)]
            axis.plot(times, [height] * 2, color=colour, linewidth=6, label=label, marker="|")  # type: ignore[arg-type]


def _lane(event: StoryEvent) -> str:
    """Return the line of the picture that an event belongs to."""
    if event.kind is StoryEventKind.DELIVERED:
        return f"{event.group}: {event.client}"
    of_group = event.kind in (StoryEventKind.SENT_BACK, StoryEventKind.RETRY, StoryEventKind.DEAD_LETTER)
    return event.group if of_group else _MESSAGE_LANE


def _is_time(timestamp_ms: int | None) -> bool:
    """Return whether a picture can show it; clients may have written any number."""
    return timestamp_ms is not None and 0 < timestamp_ms <= _LAST_MS


def _at(timestamp_ms: int) -> datetime:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC)


def _figure(width: float, height: float) -> "Figure":
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"pictures need matplotlib ({error}): pip install 'rmqtools[plot]'") from error

    class ShownFigure(Figure):
        """A figure that notebooks show without ``pyplot``, which alone makes them know its class."""

        def _repr_png_(self) -> bytes:
            data = BytesIO()
            self.savefig(data, format="png")
            return data.getvalue()

    return ShownFigure(figsize=(width, height), layout="constrained")


def _draw_shares(
    axis: "Axes",
    name: str,
    owners: Owners,
    ids: Sequence[str],
    queues: Sequence[MessageQueue],
    before: Owners | None,
) -> None:
    from matplotlib.colors import ListedColormap

    moved = {queue for queue in queues if before and set(before[queue]) != set(owners[queue])}
    columns = {client_id: index for index, client_id in enumerate(ids)}
    cells = [[_NOT_OWNED] * len(ids) for _ in queues]
    for row, queue in enumerate(queues):
        for client_id in owners[queue]:
            cells[row][columns[client_id]] = _MOVED if queue in moved else _KEPT
    axis.imshow(
        cells,
        cmap=ListedColormap(_COLOURS),
        vmin=0,
        vmax=2,
        aspect="auto",
        interpolation="nearest",
    )
    label = _label(name)
    axis.set_title(f"{label}\n{len(moved)} moved" if before and name != "now" else label)
    axis.set_xticks(range(len(ids)), [_label(client_id) for client_id in ids], rotation=90)
    if len(queues) <= _NAMED_QUEUES:
        places = [
            (columns[i], row) for row, queue in enumerate(queues) if queue in moved for i in owners[queue]
        ]
        for column, row in places:
            axis.plot(column, row, marker="x", color="black")


def _queue_name(queue: MessageQueue, *, one_topic: bool) -> str:
    place = queue_name(queue)
    return _label(place if one_topic else f"{queue.topic} {place}")


def _label(name: str) -> str:
    """Return a name as a label: made visible, and never read as a formula."""
    return visible(name).replace("$", r"\$")
