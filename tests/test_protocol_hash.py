"""The code of a protocol changes with everything a number depends on: without a field in it, one of these fails."""

from __future__ import annotations

from dataclasses import replace

import pytest

from revisit.core import DERIVED, GATES, METRICS, evidence_id
from revisit.core.observing import per_second
from revisit.engine import needs
from revisit.engine.needs import ObserverSet, observed_kinds, protocol_facts, short_hash
from revisit.observers.sets import load_roles

METRIC = METRICS["return_consistency"]  # behind a gate, on evidence that is derived from other evidence
JUDGED = METRICS["memo_vqa_ob"]


def lite(**changed) -> ObserverSet:
    return ObserverSet("lite", {**load_roles("lite"), **changed})


def judged(judge=None, **changed) -> ObserverSet:
    return ObserverSet("lite", {**load_roles("lite", judge=True), **changed}, judge or {"model": "a"})


def code(metric=METRIC, observers: ObserverSet | None = None, chosen=None) -> str:
    return short_hash(protocol_facts(metric, observers or lite(), chosen or {}))


def test_a_metric_counts_by_id_version_and_parameters():
    assert code() == code()
    tuned = replace(METRIC, params={"strictness": 1})
    changed = [replace(METRIC, version=99), replace(METRIC, id="another"), replace(METRIC, needs=METRIC.needs[:1])]
    codes = {code(), *map(code, changed), code(replace(METRIC, gates=())), code(tuned)}
    codes |= {code(tuned, chosen={METRIC.id: {"strictness": 2}})}
    assert len(codes) == 7


@pytest.mark.parametrize("role", sorted(evidence_id(kind) for kind in observed_kinds(METRIC)))
def test_every_observer_below_counts_by_all_that_its_evidence_depends_on(role, monkeypatch):
    maker = lite().roles[role]
    changed = {
        "id": replace(maker, id="another"),
        "version": replace(maker, version=99),
        "frames": replace(maker, frames=per_second(7)),
        "size": replace(maker, size=33),
        "params": replace(maker, params={**maker.params, "another": 1}),
    }
    codes = {code(observers=lite(**{role: other})) for other in changed.values()}
    assert len(codes | {code()}) == len(changed) + 1
    before = code()
    monkeypatch.setattr(needs.weights, "digests", lambda ids: {"some": "other bytes"})
    assert code() != before
    monkeypatch.undo()
    monkeypatch.setattr(needs, "DECODING_RULE", "another rule")
    assert code() != before


def test_gates_and_derived_evidence_count_too(monkeypatch):
    before = code()
    [gate] = METRIC.gates
    derived = [evidence_id(kind) for kind in METRIC.needs if evidence_id(kind) in DERIVED]
    assert derived
    for registry, ids in ((GATES, [gate]), (DERIVED, derived)):
        for id in ids:
            for change in ({"version": 99}, {"params": {**registry[id].params, "another": 1}}):
                with monkeypatch.context() as patch:
                    patch.setitem(registry._things, id, replace(registry[id], **change))
                    assert code() != before, (id, change)


def test_a_judge_and_what_it_is_shown_count():
    [asks] = [judged().roles[evidence_id(kind)] for kind in observed_kinds(JUDGED)]
    assert asks.shows is not None
    shown = evidence_id(asks.shows)
    pictures = replace(judged().roles[shown], version=99)
    judges = [{"model": "a"}, {"model": "b"}, {"model": "a", "roles": {asks.id: {"model": "c"}}}]
    codes = {code(JUDGED, judged(judge)) for judge in judges} | {code(JUDGED, judged(**{shown: pictures}))}
    assert len(codes) == 4
