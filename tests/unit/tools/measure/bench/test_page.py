"""The tables of the speed page: what they take from the JSON of a whole run."""

from tools.measure.bench.areas import all_areas
from tools.measure.bench.large import large_areas
from tools.measure.bench.medians import Run
from tools.measure.bench.page import PAGE, ROWS, with_figures
from tools.measure.bench.peers.lines import peer_areas

LARGE = "large: "


def one_round(rate, cpu):
    return {
        "count": rate,
        "seconds": 1.0,
        "cpu": cpu * rate / 1e6,
        "more": {"resident_mb": 40.0, "p50_ms": 1.5},
    }


def side(*rounds):
    return {"rounds": [one_round(*each) for each in rounds]}


def run(**sides_by_area):
    return Run({"lines": [{"area": area, "sides": sides} for area, sides in sides_by_area.items()]})


def test_a_row_has_the_medians_of_both_sides_and_the_best_one_of_several_others():
    found = run(
        **{
            "async send, 256 in flight, 100 B": [
                side((30_000, 17.2), (10, 1.0), (40_000, 99.0)),
                side((20_000, 40.4)),
                side((24_000, 41.0)),
            ],
            "async send, 256 in flight, 1024 B": [side((9_000, 9.94)), side((6_000, 9.96))],
        }
    )
    page = "text | stays\n| async send, 256 in flight | 1 | 2 | 3 | 4 |\n| another | 1 |\n"

    assert with_figures(page, found) == (
        "text | stays\n"
        "| async send, 256 in flight | 30,000, 9,000 | 24,000, 6,000 | 1.25, 1.50 | 17 / 41, 9.9 / 10 |\n"
        "| another | 1 |\n"
    )


def test_the_same_label_in_the_table_of_large_bodies_is_another_line():
    small, large = [side((4, 1.0)), side((2, 1.0))], [side((3, 1.0)), side((1, 1.0))]
    found = run(
        **{f"read -> Arrow, {size} B, 1 process": small for size in (100, 1024)},
        **{f"read -> Arrow, {size}": large for size in ("64 KB", "1 MB")},
    )
    row = "| read -> Arrow | | | | |"

    lines = with_figures(f"{row}\nBodies of 64 KB and more.\n\n{row}\n## Next\n{row}\n", found).splitlines()

    assert [line.split("|")[4].strip() for line in lines if line.startswith("|")] == [
        "2.00, 2.00",
        "3.00, 3.00",
        "2.00, 2.00",
    ]


def test_a_row_of_words_stays_as_it_is():
    found = run(
        **dict.fromkeys((f"8 messages a pull, {size}" for size in ("100 B", "1024 B")), [side((4, 1.0))] * 2)
    )
    page = "| 8 messages a pull | the broker | more a pull |\n"

    assert with_figures(page, found) == page


def test_memory_is_a_cell_of_its_own_where_it_was_measured():
    sides = [side((4_000, 70.0)), side((1_000, 200.0))]
    found = run(
        **dict.fromkeys(
            (
                "push with its start, over grpc",
                "MB after push, over grpc",
                "push, over receive + ack of grpc",
            ),
            sides,
        )
    )

    def cells(label):
        return with_figures(f"| {label} | | | | |\n", found).strip()

    assert cells("push with its start, over grpc").endswith("| 4.00 | 70 / 200 | 40 / 40 |")
    assert cells("push, over receive + ack of grpc").endswith("| 4.00 | 70 / 200 | |")


def test_every_row_is_on_the_page_and_every_area_is_one_of_the_bench():
    page = PAGE.read_text()
    assert [label for label in ROWS if f"| {label.removeprefix(LARGE)} |" not in page] == []

    measured = {area.name for area in (*all_areas(1000), *peer_areas(), *large_areas())}
    assert {area for areas in ROWS.values() for area in areas} <= measured
