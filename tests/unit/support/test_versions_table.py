"""The table of versions: its cells, and words of refusals that are equal in every run."""

from rmqtools.errors import BrokerError, ConfigError
from tests.versions.table import refusal, render


def test_the_table_numbers_the_words_of_refusals_and_shows_what_failed():
    outcomes = {"1.0": {"send": "passes", "pop": "E: no"}, "2.0": {"send": "passes", "recall": "E: no"}}

    assert render(outcomes).splitlines() == [
        "|  | 1.0 | 2.0 |",
        "| --- | --- | --- |",
        "| send | passes | passes |",
        "| pop | refused (1) | fails |",
        "| recall | fails | refused (1) |",
        "",
        "Refused with these words:",
        "",
        "1. `E: no`",
    ]


def test_without_refusals_there_are_no_words_of_them():
    assert render({"1.0": {"send": "passes"}}).splitlines()[-1] == "| send | passes |"


def test_names_and_addresses_that_differ_from_run_to_run_are_left_out_of_a_refusal():
    error = ConfigError("topic-0123456789ab at 127.0.0.1:31234 refused after 0.013 s\nmore")

    assert refusal(error) == "ConfigError: topic at HOST:PORT refused after a while"


def test_a_refusal_of_a_broker_keeps_its_code():
    error = BrokerError(3, "request type 370 not supported", "127.0.0.1:10911")

    assert "370" in refusal(error)
    assert "10911" not in refusal(error)
