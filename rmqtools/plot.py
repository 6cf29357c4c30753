"""Pictures as matplotlib figures, for notebooks and files: shares of queues, and lag over time.

    figure = shares_figure({"AVG": {queue: ["10.0.0.1@a"], ...}, "AVG_BY_CIRCLE": {...}}, before={...})
    figure.savefig("shares.svg")

Needs the extra ``plot``. The figures belong to no window; ``import matplotlib.pyplot`` lets a notebook show
them. The commands ``rmqtools allocate --plot`` and ``rmqtools group watch --plot`` save the same.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rmqtools.model.queue import MessageQueue
from rmqtools.visible_text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Owners", "lag_figure", "shares_figure"]

Owners = Mapping[MessageQueue, Sequence[str]]
"""Each queue's owners; normally one."""

_NOT_OWNED, _KEPT, _MOVED = 0, 1, 2
_COLOURS = ("#f2f2f2", "#1f77b4", "#ff7f0e")  # of these three
_NAMED_QUEUES = 64  # up to so many, each has its name and its cross
_ROW_INCHES, _COLUMN_INCHES, _MAX_INCHES = 0.22, 0.45, 40.0


def shares_figure(shares: Mapping[str, Owners], *, before: Owners | None = None) -> "Figure":
    """Draw queues by members for each strategy, side by side; moved queues are orange, with a cross.

    Args:
        shares: the owners of the queues by strategy; all with the same queues.
        before: the owners now, drawn first; a queue with others in ``shares`` has moved. None: nothing moves.

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


def _figure(width: float, height: float) -> "Figure":
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"pictures need matplotlib ({error}): pip install 'rmqtools[plot]'") from error
    return Figure(figsize=(width, height), layout="constrained")


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
    place = f"{queue.broker_name}:{queue.queue_id}"
    return _label(place if one_topic else f"{queue.topic} {place}")


def _label(name: str) -> str:
    """Return a name as a label: made visible, and never read as a formula."""
    return visible(name).replace("$", r"\$")
