"""Classes that options name: only of modules that the environment lists, and only of the role wanted."""

import sys

import pytest

from rmqtools.errors import ConfigError
from rmqtools.plug_in import Role
from spark_connector.options.plug_ins import LISTED, load_listed
from tests.support.spark_options import batch_of, write_of

UNLOADED = "this"  # a module of Python that prints when it is imported
READERS = {"readers": "2"}
ROOMS = READERS | {"allocator": "MACHINE_ROOM_NEARBY"}
CALLABLE = Role("thing", {"__call__": 3})


class Thing:
    def __call__(self, queues, message, arg): ...


def options_naming(text):
    """Every option that may name a class, with the settings of ``subprocess:getoutput``."""
    return [
        pytest.param(batch_of, READERS | {"allocator": text, "allocator.cmd": "{}"}, id="allocator"),
        pytest.param(batch_of, ROOMS | {"allocator.resolver": text}, id="resolver"),
        pytest.param(batch_of, ROOMS | {"allocator.inner": text}, id="inner"),
        pytest.param(batch_of, READERS | {"allocator": f"MACHINE_ROOM_NEARBY-{text}"}, id="dash"),
        pytest.param(write_of, {"queueSelector": text, "queueSelector.cmd": "{}"}, id="selector"),
    ]


@pytest.mark.parametrize(("use", "options"), options_naming("subprocess:getoutput"))
def test_a_function_named_by_an_option_is_not_called(use, options, tmp_path, monkeypatch):
    monkeypatch.delenv(LISTED, raising=False)
    file = tmp_path / "ran"

    with pytest.raises(
        ConfigError, match=rf"Set {LISTED}=\S*subprocess before Spark starts .* for executors"
    ):
        use(**{name: value.format(f"touch {file}") for name, value in options.items()})

    assert not file.exists()


@pytest.mark.parametrize(("use", "options"), options_naming(f"{UNLOADED}:Class"))
@pytest.mark.parametrize("listed", [None, "", "thi", "this.more", "THIS", "a, b ,,"], ids=str)
def test_a_module_that_is_not_listed_is_not_imported(use, options, listed, monkeypatch):
    monkeypatch.delenv(LISTED, raising=False)
    if listed is not None:
        monkeypatch.setenv(LISTED, listed)

    with pytest.raises(ConfigError, match=f"is not in the environment variable {LISTED}"):
        use(**{name: value for name, value in options.items() if not name.endswith(".cmd")})

    assert UNLOADED not in sys.modules


@pytest.mark.parametrize("name", ["getoutput", "Popen", "PIPE"])
@pytest.mark.parametrize("option", ["allocator", "resolver", "inner", "selector"])
def test_of_a_listed_module_only_classes_of_the_wanted_role_are_taken(option, name, monkeypatch):
    monkeypatch.setenv(LISTED, "subprocess")
    use, options = {p.id: p.values for p in options_naming(f"subprocess:{name}")}[option]
    made = []
    monkeypatch.setattr("subprocess.Popen.__init__", lambda *args, **options: made.append(args))

    with pytest.raises(ConfigError, match=r"want a class"):
        use(**{name: value.format("true") for name, value in options.items()})

    assert made == []


@pytest.mark.parametrize("listed", [__name__, f"other, {__name__} ,more"])
def test_a_class_of_a_listed_module_is_loaded(listed, monkeypatch):
    monkeypatch.setenv(LISTED, listed)

    assert load_listed(f"{__name__}:Thing", what="thing", role=CALLABLE) is Thing


def test_the_setting_to_add_a_module_keeps_those_that_are_listed(monkeypatch):
    monkeypatch.setenv(LISTED, "a,b")

    with pytest.raises(ConfigError, match=rf"^thing: module 'c' .* Set {LISTED}=a,b,c before"):
        load_listed("c:Thing", what="thing", role=CALLABLE)
