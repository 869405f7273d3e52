"""What every metric keeps, plugins too: a complete card, and a plain answer to good, empty and broken evidence."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from revisit.core import (
    DERIVED,
    EVIDENCE,
    GATES,
    KINDS,
    METRICS,
    OBSERVERS,
    SUITES,
    Case,
    Gate,
    GateResult,
    InvalidEvidence,
    Metric,
    Score,
    Series,
    Unscored,
    evidence_id,
)
from revisit.engine.cache import MemoryCache
from revisit.engine.dependencies import observed_kinds_needed_by
from revisit.engine.evidence_plan import CaseEvidence
from revisit.engine.score import CaseScorer, ScoringInput, to_json_value
from revisit.evidence.camera import TruePoseTrack
from tests.whole_clip import COUNT, case, everything, yaw_path

Answer = Score | Unscored | GateResult
EXAMPLE = Path(__file__).parents[1] / "examples/plugin"
PLUGINS = ("example.saturation_kept", "flashback_light")
OURS = [id for id in METRICS if METRICS[id].fn.__module__.startswith("revisit.")]
OUR_GATES = [id for id in GATES if GATES[id].fn.__module__.startswith("revisit.")]
REST = TruePoseTrack(np.arange(COUNT), yaw_path(0, 0), True, "unreal")


def slowed(facts: Any) -> Any:
    """Facts of the frames as if the clip took sixteen seconds."""
    return dataclasses.replace(facts, time=np.arange(COUNT) / 2.0)


# Metrics that ask another clip than most do: changes of the case, and of its evidence.
Changes = tuple[dict[str, Any], dict[str, Callable[[Any], Any]]]
MIRROR: Changes = ({"condition": "mirror_test"}, {})
STEPS: Changes = ({"condition": "AD"}, {"frame_facts": slowed})
TURNS: Changes = ({"condition": "LR"}, {"frame_facts": slowed})
OTHERWISE: dict[str, Changes] = {
    **{id: MIRROR for id in OURS if id.startswith("mind_gsc_")},
    **{id: STEPS if id.endswith("translation") else TURNS for id in OURS if id.startswith("worldmark_")},
    "long_drift": ({}, {"frame_facts": slowed}),
    **{
        f"{what}_{signal}": ({}, {"frame_facts": slowed})
        for what in ("drift", "half_life")
        for signal in ("look", "similarity", "place")
    },
    "wr_static_hold": ({"camera": "hold@32"}, {"true_pose_track": lambda _: REST}),
}


@pytest.fixture(scope="module", autouse=True)
def plugin() -> Iterator[None]:
    """The example plugin, registered while these tests run."""
    registries = (METRICS, OBSERVERS, EVIDENCE)
    before = [dict(registry._things) for registry in registries]
    sys.path.insert(0, str(EXAMPLE))
    importlib.import_module("revisit_example.saturation_metric")
    importlib.import_module("revisit_example.flashback.metrics")
    everything.cache_clear()  # it holds what all observers see
    yield
    everything.cache_clear()
    shared.cache_clear()
    sys.path.remove(str(EXAMPLE))
    for name in [name for name in sys.modules if name.startswith("revisit_example")]:
        del sys.modules[name]
    for registry, things in zip(registries, before, strict=True):
        registry._things.clear()
        cast(dict[str, Any], registry._things).update(things)


def fresh(id: str, broken: str = "", how: str = "") -> CaseScorer:
    """The evidence that a metric or gate is asked about, one kind of it broken."""
    of_case, of_evidence = OTHERWISE.get(id, ({}, {}))
    scorer = CaseScorer(ScoringInput(case(**of_case), CaseEvidence(), {}), MemoryCache())
    scorer.evidence.update(everything())
    scorer.evidence.update({kind: changed(scorer.evidence[kind]) for kind, changed in of_evidence.items()})
    if broken:
        scorer.evidence[broken] = BROKEN[how](scorer.evidence[broken])
    return scorer


@cache
def shared(id: str, broken: str = "", how: str = "") -> CaseScorer:
    """The same for all who are asked about it, so that what is derived is derived once."""
    return fresh(id, broken, how)


def ask(metric_or_gate: Metric | Gate, broken: str = "", how: str = "") -> Answer:
    """What a metric or gate answers of the clip; a metric's gates are not asked."""
    return ask_on(shared(metric_or_gate.id if metric_or_gate.id in OTHERWISE else "", broken, how), metric_or_gate)


def ask_on(scorer: CaseScorer, metric_or_gate: Metric | Gate) -> Answer:
    arguments = scorer.arguments_or_unscored(metric_or_gate)
    return arguments if isinstance(arguments, Unscored) else metric_or_gate(*arguments)


def told(answer: Answer) -> str:
    """Everything an answer says, as a run would write it."""
    facts = to_json_value(answer.facts)
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts, "facts survive JSON"
    said: dict[str, Any] = {"facts": facts}
    if isinstance(answer, Unscored):
        return json.dumps(said | dataclasses.asdict(answer.reason))
    if isinstance(answer, Score):
        said |= {"value": answer.value, "raw": answer.raw}
    else:
        said |= {"state": answer.state, "label": answer.label, "reason": answer.reason}
    if answer.units is not None:
        said["units"] = columns_of(answer.units)
    return json.dumps(said)


def columns_of(units: Series) -> dict[str, Any]:
    assert not any(column.dtype.hasobject for column in units.columns.values()), "units survive npz"
    return {name: to_json_value(column) for name, column in units.columns.items()}


def check(metric_or_gate: Metric | Gate, answer: Answer) -> None:
    """A finite score within its range, or a reason of the list; nothing that JSON cannot hold."""
    told(answer)
    if isinstance(answer, Unscored):
        assert answer.kind in KINDS and answer.kind != "failed" and answer.sentence
    elif isinstance(answer, Score):
        assert isinstance(metric_or_gate, Metric)
        low, high = metric_or_gate.range
        assert math.isfinite(answer.value)
        assert low is None or answer.value >= low, f"{answer.value} is below {low}"
        assert high is None or answer.value <= high, f"{answer.value} is above {high}"
    else:
        assert isinstance(metric_or_gate, Gate)


# Ways to break evidence


def fields_of(record: Any) -> dict[str, Any]:
    """What a record was made of, without what it worked out since."""
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def rows_of(record: Any) -> int:
    """How many rows a record has: the length of its first array."""
    return next((len(value) for value in fields_of(record).values() if isinstance(value, np.ndarray)), 0)


def cut(record: Any, rows: int) -> Any:
    """The record with its first rows only."""
    count = rows_of(record)

    def shorter(value: Any) -> Any:
        if isinstance(value, tuple) and len(value) == count:
            return value[:rows]
        if not isinstance(value, np.ndarray) or not value.ndim:
            return value
        if value.shape[:2] == (count, count):
            return value[:rows, :rows]
        more = len(value) - count  # between neighbours there is one less; of offsets there is one more
        kept = max(rows + more, 0) if abs(more) == 1 else rows if not more or not rows else len(value)
        return value[:kept]

    return dataclasses.replace(record, **{name: shorter(value) for name, value in fields_of(record).items()})


def spoilt(record: Any, all_of_it: bool) -> Any:
    """The record with nan in its first floats, or in all of them."""

    def nan(value: Any) -> Any:
        if isinstance(value, float):
            return math.nan
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or not value.size:
            return value
        made = value.copy()
        made[slice(None if all_of_it else 1)] = np.nan
        return made

    return dataclasses.replace(record, **{name: nan(value) for name, value in fields_of(record).items()})


BROKEN: dict[str, Callable[[Any], Any]] = {
    "no rows": lambda record: cut(record, 0),
    "one row": lambda record: cut(record, 1),
    "two rows": lambda record: cut(record, 2),
    "nan in the first row": lambda record: spoilt(record, False),
    "nan everywhere": lambda record: spoilt(record, True),
}


@pytest.mark.parametrize("id", [*OURS, *PLUGINS])
def test_the_card_is_complete(id: str) -> None:
    card = METRICS[id]
    low, high = card.range
    assert card.version >= 1 and card.title and card.unit
    assert card.summary.endswith((".", ":")) and len(card.summary) > 10, "the docstring's first line says what it is"
    assert low is None or high is None or low < high
    assert card.higher_is_better in (True, False, None)
    assert card.needs and all(kind is Case or evidence_id(kind) in EVIDENCE for kind in card.needs)
    assert all(gate in GATES for gate in card.gates) and all(
        suite in SUITES for suite in card.suites if id not in PLUGINS
    )
    assert card.blind_to and (card.responds_to or card.higher_is_better is None), "what it notices, and what not"
    assert not card.rewards_unchanged or None not in card.range, "what is held to the truth has a range"
    assert not card.noise_floor or (card.range[0], card.higher_is_better) == (0, False), "errors are near the best end"


@pytest.mark.parametrize("id", [*OURS, *PLUGINS])
def test_good_evidence_is_scored(id: str) -> None:
    answer = ask(METRICS[id])
    assert isinstance(answer, Score), answer
    check(METRICS[id], answer)


@pytest.mark.parametrize("id", [*OURS, *PLUGINS, *OUR_GATES])
def test_broken_evidence_gets_a_reason(id: str) -> None:
    metric_or_gate = GATES[id] if id in GATES else METRICS[id]
    kinds = {evidence_id(kind) for kind in observed_kinds_needed_by(metric_or_gate)}
    for kind in sorted(kinds):
        for how in BROKEN:
            try:
                answer = ask(metric_or_gate, kind, how)
            except InvalidEvidence as error:
                assert len(str(error)) > 20, "it says what valid evidence looks like"
                continue
            except Exception as error:
                raise AssertionError(f"{kind} with {how}: {type(error).__name__}: {error}") from error
            check(metric_or_gate, answer)


def test_the_same_evidence_gets_the_same_answer_in_any_order() -> None:
    """Nothing is kept from one clip to the next: another one is asked about in between, and the order is turned."""
    again = fresh("")
    for id in reversed([id for id in (*OURS, *PLUGINS) if id not in OTHERWISE]):
        with suppress(InvalidEvidence):
            for kind in observed_kinds_needed_by(METRICS[id]):
                ask(METRICS[id], evidence_id(kind), "two rows")
        assert told(ask_on(again, METRICS[id])) == told(ask(METRICS[id])), id


def test_derived_evidence_is_evidence() -> None:
    assert all(id in EVIDENCE for id in DERIVED)
