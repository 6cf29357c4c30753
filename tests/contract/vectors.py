"""Compare our public code with vectors made by the official Java client."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.contract import (
    adapters_allocate,
    adapters_consumer,
    adapters_header_fields,
    adapters_headers,
    adapters_messages,
    adapters_model,
    adapters_policy,
    adapters_producer,
    adapters_protocol,
    adapters_rebalance,
)
from tests.contract.vector_spec import Case, Spec

SPECS: Mapping[str, tuple[Spec, ...]] = {
    **adapters_allocate.SPECS,
    **adapters_model.SPECS,
    **adapters_protocol.SPECS,
    **adapters_headers.SPECS,
    **adapters_header_fields.SPECS,
    **adapters_messages.SPECS,
    **adapters_policy.SPECS,
    **adapters_producer.SPECS,
    **adapters_rebalance.SPECS,
    **adapters_consumer.SPECS,
}


@dataclass(frozen=True)
class Result:
    """How a file came out. ``difference`` describes the first case that differs."""

    passed: int
    total: int
    difference: str | None = None


def load_cases(path: Path) -> list[Case]:
    """The cases of a vector file."""
    cases: list[Case] = json.loads(path.read_text("utf-8"))
    return cases


def spec_of(specs: Sequence[Spec], case: Case) -> Spec:
    """The spec that takes a case."""
    return next(spec for spec in specs if spec.takes(case))


def run_file(path: Path) -> Result:
    """Run every case of a file."""
    cases, specs = load_cases(path), SPECS[path.stem]
    differences = [text for case in cases if (text := run_case(spec_of(specs, case), case)) is not None]
    return Result(len(cases) - len(differences), len(cases), differences[0] if differences else None)


def run_case(spec: Spec, case: Case) -> str | None:
    """None where our answer is Java's, else both of them."""
    wanted, given = spec.wanted(case), spec.given(case)
    try:
        answered = spec.answered(case)
    except Exception as error:  # noqa: BLE001 # whatever an adapter raises is a difference to show
        answered = f"raised {error!r}"
    if answered == wanted:
        return None
    return "\n".join(f"    {name}: {_short(value)}" for name, value in _parts(given, wanted, answered))


def _parts(given: Any, wanted: Any, answered: Any) -> list[tuple[str, Any]]:
    if isinstance(wanted, dict) and isinstance(answered, dict):
        keys = [key for key in {**wanted, **answered} if wanted.get(key, ...) != answered.get(key, ...)]
        wanted = {key: wanted[key] for key in keys if key in wanted}
        answered = {key: answered[key] for key in keys if key in answered}
    return [("given", given), ("Java", wanted), ("ours", answered)]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 2000 else text[:2000] + "..."
