"""Large bodies: what is compared, and their backlogs. Bodies are not compressed, on either side.

Compressed by default, a body of one byte repeated is a thousandth on the wire: inflating it is all that such
a line would measure (2 us a KB, with the same library on both sides).
"""

from typing import Final

from tools.measure.bench.areas import Area, Side, backlog, sink
from tools.measure.bench.broker import Broker

SIZES: Final = {64 * 1024: "64 KB", 1024 * 1024: "1 MB"}
_BACKLOG_BYTES: Final = 512 * 1024 * 1024
_READ_BAR, _SEND_BAR = 1.0, 0.9


def fill_large(broker: Broker) -> None:
    """Make the backlogs, and the topics that are sent to."""
    for size in SIZES:
        broker.fill(backlog(size), size=size, count=_BACKLOG_BYTES // size)
        broker.make_topic(sink(size))


def large_areas() -> list[Area]:
    """Return the lines of the group ``large``, reads first: each line deletes what its sends have written."""
    return [area for lines in (_reads, _sends) for size, text in SIZES.items() for area in lines(size, text)]


def _reads(size: int, text: str) -> list[Area]:
    topic, total = backlog(size), _BACKLOG_BYTES // size

    def side(program: str, work: str, **settings: object) -> Side:
        return Side(program=program, work=work, settings={"topic": topic, **settings}, reads=total)

    java = side("java", "pull", threads=8)
    arrow = side("ours", "arrow", processes=1, threads=1, columns="nine")
    objects = {
        name: side("ours", "objects", kind="lazy", face=face)
        for face, name in (("aio", "aio"), ("sync", "blocking"))
    }
    ways = {"read -> Arrow": arrow} | {f"message objects, {name}": way for name, way in objects.items()}
    return [
        Area(name=f"{name}, {text}", ours=way, theirs=(java,), bar=_READ_BAR, group="large")
        for name, way in ways.items()
    ]


def _sends(size: int, text: str) -> list[Area]:
    def side(program: str, mode: str) -> Side:
        settings = {"mode": mode, "topic": sink(size), "size": size, "flight": 1}
        return Side(program=program, work="send", settings=settings, sends_to=sink(size))

    return [
        Area(
            name=f"sync send, {name}, {text}",
            ours=side("ours", mode),
            theirs=(side("java", "sync"),),
            bar=_SEND_BAR,
            group="large",
        )
        for mode, name in (("aio-sync", "aio"), ("sync", "blocking"))
    ]
