"""Comparisons of the bench, and the demanded share of the Java client's speed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

SIZES: Final = (100, 1024)
_FACES: Final = {"aio": "aio", "sync": "blocking"}  # the bar is aio's, both are shown


@dataclass(frozen=True, kw_only=True)
class Side:
    """One kind of round: which program does which work."""

    program: str
    work: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    sends_to: str | None = None  # the topic whose offsets must grow by what was counted
    reads: int | None = None  # how many messages its topic has; None: as the bench was asked for


@dataclass(frozen=True, kw_only=True)
class Area:
    """A line of the table.

    Attributes:
        name: as the table says it.
        ours: our way.
        theirs: what it is compared with; of several the best counts.
        bar: the demanded ratio; of rates at least, of times (``value``) at most.
        cpu_bar: the client's CPU per message over theirs, at most; None: one over ``bar``.
        value: a number of the round to compare instead of the rate; less is better.
        group: for choosing areas on the command line.
        quick: whether ``bench-quick`` has it.
        broker: broker settings while it runs.
    """

    name: str
    ours: Side
    theirs: tuple[Side, ...] = ()
    bar: float | None = None
    cpu_bar: float | None = None
    value: str | None = None
    group: str = ""
    quick: bool = False
    broker: Mapping[str, str] = field(default_factory=dict)

    @property
    def writes_much(self) -> bool:
        """True if it fills disks; no line that comes later in the same group reads what was there before."""
        return self.ours.sends_to is not None and self.group != "peers"


def backlog(size: int) -> str:
    """Return the topic with messages to read."""
    return f"bench-backlog-{size}"


def sink(size: int) -> str:
    """Return the topic that is sent to."""
    return f"bench-sink-{size}"


def all_areas(total: int) -> list[Area]:
    """Every line, reads first: what is sent meanwhile makes their backlog old, or has it deleted."""
    return [*_reads(total), *_spark_reads(total), *_latencies(), *_sends(), _spark_write(total)]


_COLUMNS = {"nine": "", "all": ", all 15 columns"}  # the bar is for nine
_KINDS = {"lazy": "lazy", "properties": "eager properties", "all": "all fields"}


def _pull(size: int) -> Side:
    return Side(program="java", work="pull", settings={"topic": backlog(size), "threads": 8})


def _arrow(size: int, processes: int, columns: str = "nine") -> Side:
    settings = {"topic": backlog(size), "processes": processes, "threads": 1, "columns": columns}
    return Side(program="ours", work="arrow", settings=settings)


def _reads(total: int) -> list[Area]:
    areas = [
        Area(
            name=f"count only, {size} B (ceiling)",
            ours=Side(program="ours", work="count", settings={"topic": backlog(size)}),
            group="read",
            quick=size == 1024,
        )
        for size in SIZES
    ]
    bars = {100: 1.25, 1024: 1.1}
    areas += [
        Area(
            name=f"read -> Arrow, {size} B, 1 process{_COLUMNS[columns]}",
            ours=_arrow(size, 1, columns),
            theirs=(_pull(size),),
            bar=bars[size] if columns == "nine" else None,
            cpu_bar=0.85 if columns == "nine" else None,
            group="read",
            quick=columns == "nine",
        )
        for columns in _COLUMNS
        for size in SIZES
    ]
    areas.append(
        Area(
            name="read -> Arrow, 1024 B, 2 processes",
            ours=_arrow(1024, 2),
            theirs=(_pull(1024),),
            bar=1.6,
            group="read",
        )
    )
    areas += [
        Area(
            name=f"message objects, {_KINDS[kind]}, {_FACES[face]}, {size} B",
            ours=Side(
                program="ours", work="objects", settings={"topic": backlog(size), "kind": kind, "face": face}
            ),
            theirs=(_pull(size),),
            bar=bar if face == "aio" else None,
            group="objects",
            quick=kind == "lazy" and size == 1024,
        )
        for kind, bar in (("lazy", 1.0), ("properties", 0.8), ("all", None))
        for face in _FACES
        for size in SIZES
    ]
    areas += _consumers(total)
    areas += [
        Area(
            name=f"8 messages a pull, {size} B",
            ours=_arrow(size, 1),
            theirs=(_pull(size),),
            bar=1.0,
            group="disk",
            broker={"maxTransferCountOnMessageInMemory": "8"},
        )
        for size in SIZES
    ]
    return areas


def _consumers(total: int) -> list[Area]:
    """Push and pull consumers; a line without a number in its name has the settings that users get."""
    areas = [
        Area(
            name=f"{_PUSHES[name]}, {_FACES[face]}, {size} B",
            ours=_push("ours", size, total, face=face, **settings),
            theirs=(_push("java", size, total, **settings),),
            bar=bar,
            group="push",
            quick=size == 1024 and name == "1",
        )
        for name, settings, bars in _PUSH_LINES
        for face, bar in bars.items()
        for size in SIZES
    ]
    areas += [
        Area(
            name=f"push, no-op listener, aio on uvloop, {size} B",
            ours=_on_uvloop(_push("ours", size, total, face="aio")),
            theirs=(_push("java", size, total),),
            bar=None,
            group="push",
        )
        for size in SIZES
    ]
    areas += [
        Area(
            name=f"{name}, blocking, {size} B",
            ours=_poll("ours", size, total, by=by),
            theirs=(_poll("java", size, total, by=by),),
            bar=0.5,
            group="push",
        )
        for by, name in (("poll", "poll"), ("iteration", "for message in consumer"))
        for size in SIZES
    ]
    return areas


_PUSHES = {
    "32": "push, no-op listener, 32 a call",
    "1": "push, no-op listener",
    "one thread": "push, no-op listener, consume_threads=1",
    "orderly": "orderly push, no-op listener",
    "pop": "popping push, no-op listener",
}
_PUSH_LINES: tuple[tuple[str, dict[str, Any], dict[str, float | None]], ...] = (
    ("32", {"batch": 32}, {"aio": 0.8, "sync": 0.8}),
    ("1", {}, {"aio": 0.8, "sync": 0.6}),
    ("one thread", {"threads": 1}, {"sync": None}),
    ("orderly", {"kind": "orderly"}, {"sync": 0.5}),
    ("pop", {"kind": "pop"}, {"sync": 0.5}),
)


def _push(
    program: str,
    size: int,
    total: int,
    *,
    face: str = "",
    kind: str = "any",
    threads: int = 20,
    batch: int = 1,
) -> Side:
    settings = {
        "face": face,
        "topic": backlog(size),
        "kind": kind,
        "threads": threads,
        "batch": batch,
        "total": total,
        "group": f"push-{program}{face}-@",
    }
    return Side(program=program, work="push", settings=settings)


def _poll(program: str, size: int, total: int, *, by: str) -> Side:
    settings = {
        "topic": backlog(size),
        "by": by,
        "batch": 10,
        "total": total,
        "group": f"poll-{program}-@",
    }
    return Side(program=program, work="poll", settings=settings)


def _latencies() -> list[Area]:
    def side(program: str) -> Side:
        settings = {"topic": "bench-latency", "threads": 20, "batch": 1, "rate": 100, "total": 300}
        settings["group"] = f"latency-{program}-@"
        return Side(program=program, work="latency", settings=settings)

    return [
        Area(
            name=f"latency send -> listener, {value[:3]}",
            ours=side("ours"),
            theirs=(side("java"),),
            bar=1.5,
            value=value,
            group="latency",
        )
        for value in ("p50_ms", "p99_ms")
    ]


def _send(program: str, mode: str, size: int, flight: int) -> Side:
    settings = {"mode": mode, "topic": sink(size), "size": size, "flight": flight}
    return Side(program=program, work="send", settings=settings, sends_to=sink(size))


def _on_uvloop(side: Side) -> Side:
    return replace(side, settings={**side.settings, "loop": "uvloop"})


_LINGER: Final = {"linger": 0.01, "batch_bytes": 32 * 1024}  # Java's defaults where autoBatch is on


def _lingering(size: int) -> list[Area]:
    """Single sends that share requests, over Java's autoBatch and over our own single sends."""

    def side(program: str, mode: str, **settings: Any) -> Side:
        made = _send(program, mode, size, 4096)
        return replace(made, settings={**made.settings, **settings})

    ours = side("ours", "aio-async", **_LINGER)
    theirs = (side("java", "async-linger", **_LINGER),)
    name = f"async send, 4,096 in flight, linger, {size} B"
    return [
        Area(name=f"{name}, uvloop", ours=_on_uvloop(ours), theirs=theirs, bar=None, group="linger"),
        Area(name=name, ours=ours, theirs=theirs, bar=1.0, group="linger"),
        Area(
            name=f"{name}, over no linger",
            ours=ours,
            theirs=(side("ours", "aio-async"),),
            bar=3.0,
            group="linger",
        ),
    ]


def _sends() -> list[Area]:
    sync, aio = (_send("java", "sync", 100, 1),), _send("ours", "aio-sync", 100, 1)
    areas = [
        Area(name="sync send, aio, 100 B", ours=aio, theirs=sync, bar=None, group="send", quick=True),
        Area(
            name="sync send, aio on uvloop, 100 B", ours=_on_uvloop(aio), theirs=sync, bar=1.1, group="send"
        ),
        Area(
            name="sync send, blocking face, 100 B",
            ours=_send("ours", "sync", 100, 1),
            theirs=sync,
            bar=1.0,
            group="send",
        ),
        Area(
            name="sync send, blocking face, 8 threads, 100 B",
            ours=_send("ours", "sync", 100, 8),
            theirs=(_send("java", "sync", 100, 8),),
            bar=0.9,
            group="send",
        ),
    ]
    areas += [
        Area(
            name=f"async send, 256 in flight, {size} B",
            ours=_send("ours", "aio-async", size, 256),
            theirs=(_send("java", "async", size, 256), _send("java", "async", size, 2048)),
            bar=1.1,
            group="send",
            quick=size == 100,
        )
        for size in SIZES
    ]
    areas += [area for size in SIZES for area in _lingering(size)]
    areas += [
        Area(
            name=f"{name}, {size} B",
            ours=_send("ours", mode, size, count),
            theirs=(_send("java", "batch", size, count or 128),),
            bar=bar,
            group="batch",
            quick=mode == "columns" and count == 32 and size == 1024,
        )
        for name, mode, count, bar in (
            ("batch 32, columns", "columns", 32, 1.2),
            ("batch 128, columns", "columns", 128, 1.2),
            ("all at once, columns, over batch 128", "columns", 0, 1.2),
            ("batch 32, Messages, aio", "aio-batch", 32, None),
            ("batch 128, Messages, aio", "aio-batch", 128, None),
            ("batch 128, Messages, blocking face", "batch", 128, 0.8),
            ("send_many, Messages, over batch 128", "many", 128, 0.8),
        )
        for size in SIZES
    ]
    return areas


def _spark_reads(total: int) -> list[Area]:
    stream = {"rows": 1000, "batches": 12}
    return [
        Area(
            name="Spark read -> noop, 1024 B",
            ours=Side(program="spark", work="read", settings={"topic": backlog(1024), "total": total}),
            theirs=(_pull(1024),),
            bar=0.5,
            group="spark",
        ),
        Area(
            name="Spark stream, 1000 rows a batch, over rate source",
            ours=Side(program="spark", work="stream", settings={"topic": backlog(1024), **stream}),
            theirs=(Side(program="spark", work="rate", settings=stream),),
            bar=1.3,
            value="batch_ms",
            group="stream",
        ),
    ]


def _spark_write(total: int) -> Area:
    return Area(
        name="Spark write, 1024 B",
        ours=Side(
            program="spark",
            work="write",
            settings={"topic": sink(1024), "total": total, "size": 1024},
            sends_to=sink(1024),
        ),
        theirs=(_send("java", "batch", 1024, 32),),
        bar=0.45,
        group="spark",
    )
