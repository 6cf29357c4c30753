import json
from pathlib import Path
from typing import Any

import pytest

from rmqtools.model import codes
from rmqtools.protocol.headers.codec import header_fields
from tests.contract import vectors
from tests.contract.adapters_header_fields import header_class
from tests.contract.adapters_model import NEWER_REQUEST_CODES, members, request_codes
from tests.contract.vector_spec import Spec
from tests.support.headers import HEADERS

VECTORS = Path(__file__).parents[2] / "vectors"
CASES = 1876  # of all files: none may get lost
POISON = {"poison": "☠"}


def poisoned(value, inputs):
    """A copy whose every value outside the inputs is poison; ``inputs`` is a tree of keys."""
    if isinstance(value, list):
        return [poisoned(item, inputs) for item in value]
    if not isinstance(value, dict):
        return POISON
    copied = {
        key: item if inputs.get(key) == {} else poisoned(item, inputs.get(key, {}))
        for key, item in value.items()
    }
    return copied | {"another": POISON}


def input_tree(spec: Spec):
    tree: dict[str, Any] = {} if spec.op is None else {"op": {}}
    for path in spec.inputs:
        place = tree
        for key in path.replace("[]", "").split("."):
            place = place.setdefault(key, {})
    return tree


@pytest.mark.parametrize("name", vectors.SPECS)
def test_our_answers_are_javas(name):
    result = vectors.run_file(VECTORS / f"{name}.json")

    assert result == vectors.Result(result.total, result.total)


def test_every_file_has_an_adapter_and_no_case_is_lost():
    cases = {path.stem: vectors.load_cases(path) for path in VECTORS.glob("*.json")}

    assert cases.keys() == vectors.SPECS.keys()
    assert sum(map(len, cases.values())) == CASES


def test_every_header_with_fields_is_compared_with_javas():
    compared = {header_class(case["header"]) for case in vectors.load_cases(VECTORS / "header_fields.json")}
    lacking = [
        name
        for name, made in HEADERS.items()
        if header_fields(made) and not {made, *made.__subclasses__()} & compared
    ]

    assert not lacking, (
        f"add the fields that Java has of {', '.join(lacking)} to tests/vectors/header_fields.json"
    )


@pytest.mark.process  # it works for seconds
@pytest.mark.parametrize("name", vectors.SPECS)
def test_nothing_but_the_inputs_reaches_an_adapter(name):
    for case in vectors.load_cases(VECTORS / f"{name}.json"):
        spec = vectors.spec_of(vectors.SPECS[name], case)
        poison = poisoned(case, input_tree(spec))

        assert poison != case
        assert spec.adapter(spec.given(poison)) == spec.adapter(spec.given(case))


def changed(tmp_path, name, change):
    """The result of a vector file after ``change(cases)``."""
    cases = vectors.load_cases(VECTORS / f"{name}.json")
    change(cases)
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(cases))
    return vectors.run_file(path)


def test_a_difference_is_shown_for_the_first_case(tmp_path):
    def change(cases):
        cases[1]["map"], cases[2]["map"] = {"a": "wrong"}, {"a": "wrong too"}

    result = changed(tmp_path, "properties", change)

    assert (result.passed, result.total) == (12, 14)
    assert "wrong" in result.difference
    assert "wrong too" not in result.difference


def test_an_answer_that_lacks_a_key_of_java_differs(tmp_path):
    assert changed(tmp_path, "sys_flag", lambda cases: cases[0].update(newInJava=1)).passed == 23


def test_an_adapter_that_raises_is_a_difference(tmp_path):
    broken = {"in": [["T"]], "sorted": [], "strings": []}

    result = changed(tmp_path, "queue_order", lambda cases: cases.__setitem__(slice(None), [broken]))

    assert "raised TypeError" in result.difference


def test_no_adapter_is_told_which_case_it_answers():
    labels = {"id", "what", "compression"}
    told = {
        name: labels & {path for spec in specs for path in spec.inputs}
        for name, specs in vectors.SPECS.items()
    }

    assert {name: paths for name, paths in told.items() if paths} == {
        "message_batch_rules": {"what"},  # the file holds no messages, only their names
    }


def test_a_request_code_newer_than_the_vectors_java_is_marked_with_its_version():
    newest = tuple(map(int, codes.MQ_VERSION_NAME.removeprefix("V").split("_")))
    unknown = NEWER_REQUEST_CODES.keys() - members(codes.RequestCode).keys()
    old = [name for name, since in NEWER_REQUEST_CODES.items() if tuple(map(int, since.split("."))) <= newest]

    assert (unknown, old) == (set(), [])
    assert members(codes.RequestCode).keys() - request_codes({"SEND_MESSAGE": "5.6.0"}).keys() == {
        "SEND_MESSAGE"
    }
