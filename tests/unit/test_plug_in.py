"""Classes that users name, and options by the parameters they mean."""

import sys
from types import ModuleType
from typing import Any

import pytest

from rmqtools.errors import ConfigError
from rmqtools.plug_in import Role, load_callable, load_class, match_options


class Rack:
    def __init__(self, rack_names: str, *, size: int = 1) -> None:
        self.rack_names, self.size = rack_names, size


class Shelf:
    """Has methods of every kind; making one is an error."""

    def __init__(self) -> None:
        raise AssertionError("a check of its class has made one")

    def own(self, one: object, two: object = None) -> None: ...

    @classmethod
    def of_class(cls, one: object) -> None: ...

    @staticmethod
    def of_nobody(one: object) -> None: ...


class LargeShelf(Shelf):
    own_number = 5


def anything(**options: object) -> dict[str, object]:
    return options


@pytest.fixture(autouse=True)
def module(monkeypatch):
    module: Any = ModuleType("users_racks")
    module.Rack, module.number = Rack, 5
    module.LargeShelf, module.anything = LargeShelf, anything
    monkeypatch.setitem(sys.modules, "users_racks", module)


def test_a_class_is_found_by_module_and_name():
    assert load_callable("users_racks:Rack", what="rack 'users_racks:Rack'") is Rack


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no_such_module:Rack", "No module named 'no_such_module'"),
        ("users_racks:Wreck", "no attribute 'Wreck'"),
        (":Rack", "want module:Class that can be imported"),
        ("users_racks:", "want module:Class that can be imported"),
        ("users_racks:number", "is a int: want a class, or a function"),
    ],
)
def test_what_cannot_be_called_is_a_config_error_that_names_it(text, why):
    with pytest.raises(ConfigError, match=f"^rack {text!r}.*{why}"):
        load_callable(text, what=f"rack {text!r}")


@pytest.mark.parametrize(
    "methods",
    [{"own": 1}, {"own": 2}, {"of_class": 1}, {"of_nobody": 1}, {"own": 1, "of_nobody": 1}],
    ids=str,
)
def test_a_class_of_a_role_is_found_and_not_made(methods):
    role = Role("shelf", methods)

    assert load_class("users_racks:LargeShelf", what="shelf", role=role) is LargeShelf


@pytest.mark.parametrize(
    ("name", "methods", "why"),
    [
        ("LargeShelf", {"own": 3}, "cannot be a shelf: want a class with a method 'own' of 3 arguments"),
        ("LargeShelf", {"of_class": 2}, "cannot be a shelf"),
        ("LargeShelf", {"of_nobody": 2}, "cannot be a shelf"),
        ("LargeShelf", {"own": 1, "missing": 1}, "want a class with a method 'missing' of 1 arguments"),
        ("LargeShelf", {"own_number": 1}, "cannot be a shelf"),
        ("LargeShelf", {"__call__": 3}, "want a class with a method '__call__' of 3 arguments"),
        ("anything", {}, "is a function: want a class"),
        ("number", {}, "is a int: want a class"),
        ("Wreck", {}, "no attribute 'Wreck'"),
    ],
)
def test_what_is_no_class_of_a_role_is_refused_before_anything_is_called(name, methods, why):
    with pytest.raises(ConfigError, match=f"^the shelf.*{why}"):
        load_class(f"users_racks:{name}", what="the shelf", role=Role("shelf", methods))


@pytest.mark.parametrize("name", ["rack_names", "rackNames", "RACK-NAMES", "rack.names"])
def test_an_option_means_the_parameter_of_its_name_however_it_is_written(name):
    assert match_options(Rack, {name: "a,b"}, what="rack") == {"rack_names": "a,b"}


def test_a_function_that_takes_anything_gets_options_as_they_are():
    assert match_options(anything, {"rackNames": 1}, what="rack") == {"rackNames": 1}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"rakNames": "a"}, r"unknown option 'racks\.rakNames' \(did you mean 'racks\.rack_names'\?\)"),
        ({}, r"rack: missing a required argument: 'rack_names'; it takes racks\.rack_names, racks\.size"),
    ],
)
def test_options_that_do_not_fit_are_a_config_error_that_says_what_does(options, text):
    with pytest.raises(ConfigError, match=text):
        match_options(Rack, options, what="rack", prefix="racks.")


def test_only_the_names_that_may_be_given_are_known():
    with pytest.raises(ConfigError, match="unknown option 'size'"):
        match_options(Rack, {"size": 2}, what="rack", names=("rack_names",))
