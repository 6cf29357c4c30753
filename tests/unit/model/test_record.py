import copy
import dataclasses
import inspect
import pickle

import pytest

from rmqtools.model.record import record


@record
class Base:
    """A base."""

    name: str
    size: int = 1


@record
class Derived(Base):
    """One with a field that is made for each value."""

    tags: list[str] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(f"size={self.size}")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A frozen dataclass with the same fields."""

    name: str
    size: int = 1
    tags: list[str] = dataclasses.field(default_factory=list)


def test_a_record_has_the_fields_the_text_and_the_defaults_of_a_frozen_dataclass():
    one = Derived(name="a")

    assert repr(one) == repr(Plain(name="a")).replace("Plain", "Derived")
    assert dataclasses.asdict(one) == dataclasses.asdict(Plain(name="a"))
    assert dataclasses.replace(one, size=3) == Derived(name="a", size=3)
    assert one.tags is not Derived(name="a").tags


def test_records_are_equal_by_class_and_values_and_equal_ones_have_one_hash():
    assert Base(name="a") == Base(name="a", size=1)
    assert hash(Base(name="a")) == hash(Base(name="a", size=1))
    assert Base(name="a") != Base(name="b")
    assert Base(name="a") != Derived(name="a")


@pytest.mark.parametrize("act", [lambda one: setattr(one, "size", 2), lambda one: delattr(one, "size")])
def test_a_record_is_not_changed(act):
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'size'"):
        act(Base(name="a"))


def test_a_record_has_no_place_for_other_attributes():
    assert not hasattr(Derived(name="a"), "__dict__")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        pytest.param({}, "is missing the argument 'name'", id="missing"),
        pytest.param({"name": "a", "sise": 1}, "unexpected keyword argument 'sise'", id="unknown"),
    ],
)
def test_a_wrong_argument_is_named(given, text):
    with pytest.raises(TypeError, match=text):
        Base(**given)


def test_a_record_checks_its_values():
    with pytest.raises(ValueError, match="size=-1"):
        Derived(name="a", size=-1)


@pytest.mark.parametrize(
    "made_again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_a_record_can_be_copied_and_pickled(made_again):
    one = Derived(name="a", tags=["x"])

    assert made_again(one) == one


@record(kw_only=False)
class Placed:
    """One whose fields are given by place, too."""

    name: str
    secret: str = dataclasses.field(default="", repr=False, compare=False)
    tags: list[str] = dataclasses.field(default_factory=list)


def test_fields_are_given_by_place_or_name():
    assert Placed("a", tags=["b"]) == Placed(name="a", tags=["b"])
    assert Placed("a", "hidden", ["b"]).tags == ["b"]


def test_a_field_that_is_not_shown_or_compared_is_neither():
    assert repr(Placed("a", "hidden")) == "Placed(name='a', tags=[])"
    assert Placed("a", "hidden") == Placed("a", "other")
    assert hash(Base(name="a")) != hash(Base(name="b"))
    assert pickle.loads(pickle.dumps(Placed("a", "hidden"))).secret == "hidden"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        pytest.param(lambda: Placed(*"abcd"), "takes 3 arguments by place, and got 4", id="many"),
        pytest.param(lambda: Placed("a", name="b"), "got the argument 'name' twice", id="twice"),  # type: ignore[misc]
        pytest.param(lambda: Base("a"), "by name only, and got 1", id="by name"),  # type: ignore[call-arg]
    ],
)
def test_wrong_places_are_named(make, text):
    with pytest.raises(TypeError, match=text):
        make()


def test_a_class_has_the_signature_of_its_fields():
    placed = "(name: str, secret: str = '', tags: list[str] = Ellipsis) -> None"

    assert str(inspect.signature(Placed)) == placed
    assert str(inspect.signature(Base)) == "(*, name: str, size: int = 1) -> None"
