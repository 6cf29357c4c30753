"""How a vector file is run: which keys of a case are inputs, which adapter answers them, what is compared.

A path names keys from the top of a case: ``topic``, ``value.opaque``, ``steps[].isDefault`` (of every
element). A path to an object or a list means all of it.
"""

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rmqtools.errors import MessageRejectedError, ProtocolError, RocketMQError
from rmqtools.model.queue import MessageQueue

Case = dict[str, Any]
Adapter = Callable[[Case], Any]

# Java's class -> ours. Kinds are compared, not texts.
ERROR_OF_JAVA: Mapping[str, type[Exception]] = {
    "java.lang.ArithmeticException": ZeroDivisionError,
    "java.lang.IllegalArgumentException": ProtocolError,
    "java.lang.NullPointerException": TypeError,
    "java.lang.NumberFormatException": ProtocolError,
    "java.lang.UnsupportedOperationException": MessageRejectedError,
    "java.nio.BufferUnderflowException": ProtocolError,
    "org.apache.rocketmq.client.exception.MQClientException": MessageRejectedError,
    "org.apache.rocketmq.remoting.exception.RemotingCommandException": ProtocolError,
}


@dataclass(frozen=True, kw_only=True)
class Spec:
    """How the cases of a file, or those of one ``op``, are run.

    Attributes:
        inputs: paths the adapter gets; nothing else of the case reaches it.
        adapter: answers with all other keys of the case.
        op: the case's ``op`` this is for; None where cases have none.
        both: inputs that the adapter must also answer with.
        labels: paths that describe a case and are not compared.
        unpinned: paths left out of the answer where Java's answer has none.
        errors: for Java's classes that mean something else here than in :data:`ERROR_OF_JAVA`.
        normal: brings both answers into one form, where two forms mean the same.
    """

    inputs: tuple[str, ...]
    adapter: Adapter
    op: str | None = None
    both: tuple[str, ...] = ()
    labels: tuple[str, ...] = ("id", "what")
    unpinned: tuple[str, ...] = ()
    errors: Mapping[str, type[Exception]] = field(default_factory=dict)
    normal: Callable[[Any], Any] = lambda answer: answer

    def takes(self, case: Case) -> bool:
        """Return whether a case is one of these."""
        return case.get("op") == self.op and all(path.split("[")[0] in case for path in self.inputs)

    def given(self, case: Case) -> Case:
        """What the adapter gets of a case."""
        paths = self.inputs if self.op is None else (*self.inputs, "op")
        kept: Case = _keep(case, _tree(paths))
        return kept

    def wanted(self, case: Case) -> Any:
        """Java's answer."""
        dropped = {*self.inputs, *self.labels, "op"} - set(self.both)
        kinds = {**ERROR_OF_JAVA, **self.errors}
        return self.normal(_with_our_errors(_drop(case, _tree(tuple(dropped))), kinds))

    def answered(self, case: Case) -> Any:
        """Our answer; of ``unpinned`` only what Java's answer has."""
        answer = self.adapter(self.given(case))
        absent = tuple(path for path in self.unpinned if not _has(case, path.split(".")))
        return self.normal(_drop(answer, _tree(absent)))


def outcome(function: Callable[..., Any], *arguments: Any, **named: Any) -> Case:
    """``{"value": ...}`` or ``{"error": ...}`` as the vectors write it."""
    try:
        return {"value": function(*arguments, **named)}
    except (RocketMQError, ValueError, TypeError, ArithmeticError) as error:
        return {"error": type(error).__name__}
    except AttributeError as error:
        if error.obj is not None:
            raise
        return {"error": TypeError.__name__}  # Python's other class for what Java calls a null pointer


def show_queues(queues: Iterable[MessageQueue]) -> list[list[Any]]:
    """Queues as the vectors write them."""
    return [[queue.topic, queue.broker_name, queue.queue_id] for queue in queues]


def or_none(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """None for a ProtocolError: Java's decoders answer null where ours raise."""
    try:
        return function(*arguments, **named)
    except ProtocolError:
        return None


def null_if_empty(*keys: str) -> Callable[[Any], Any]:
    """A normal form: under these keys nothing, "" and {} are the same null."""

    def normal(answer: Any) -> Any:
        if isinstance(answer, list):
            return [normal(item) for item in answer]
        if not isinstance(answer, dict):
            return answer
        items = {key: (item or None) if key in keys else normal(item) for key, item in answer.items()}
        return {key: item for key, item in items.items() if key not in keys or item is not None}

    return normal


def _with_our_errors(answer: Any, kinds: Mapping[str, type[Exception]]) -> Any:
    if isinstance(answer, list):
        return [_with_our_errors(item, kinds) for item in answer]
    if not isinstance(answer, dict):
        return answer
    if isinstance(answer.get("error"), dict):
        answer = answer | {"error": kinds[answer["error"]["class"]].__name__}
    return {key: _with_our_errors(item, kinds) for key, item in answer.items()}


def _tree(paths: tuple[str, ...]) -> dict[str, Any]:
    """``("a", "b[].c")`` -> ``{"a": {}, "b": {"c": {}}}``."""
    tree: dict[str, Any] = {}
    for path in paths:
        place = tree
        for key in path.replace("[]", "").split("."):
            place = place.setdefault(key, {})
    return tree


def _keep(value: Any, tree: Mapping[str, Any]) -> Any:
    if not tree:
        return copy.deepcopy(value)
    if isinstance(value, list):
        return [_keep(item, tree) for item in value]
    return {key: _keep(item, tree[key]) for key, item in value.items() if key in tree}


def _drop(value: Any, tree: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_drop(item, tree) for item in value]
    if not isinstance(value, dict) or not tree:
        return value
    kept = {key: item for key, item in value.items() if tree.get(key) != {}}
    return {key: _drop(item, tree.get(key, {})) for key, item in kept.items()}


def _has(value: Any, keys: list[str]) -> bool:
    return not keys or (isinstance(value, dict) and keys[0] in value and _has(value[keys[0]], keys[1:]))
