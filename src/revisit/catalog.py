"""Everything there is to list and show, as plain rows and cards."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from revisit.audit import cards
from revisit.core import EVIDENCE, GATES, METRICS, OBSERVERS, SUITES, UsageError, evidence_id
from revisit.core.cases import Case
from revisit.core.text import did_you_mean_question
from revisit.networks import numeric_spread
from revisit.observers.sets import load_roles, read_set, set_names
from revisit.results.distances import KINDS

Card = dict[str, Any]  # facts by name: texts, numbers, and lists and mappings of them
SENTENCES = ("machines", "spread", "audit")  # facts that are whole sentences, each in a line of its own


def list_rows_of_kind(kind: str) -> list[Card]:
    """One row per suite, metric, gate, observer, kind of evidence, observer set or distance between sets of clips."""
    if kind == "suites":
        return [{"id": s.id, "title": s.title, "protocols": ", ".join(s.protocols)} for s in SUITES.values()]
    if kind == "metrics":
        return [
            {
                "id": m.id,
                "v": m.version,
                "unit": m.unit,
                "better": _direction_word(m.higher_is_better),
                "what": m.summary,
            }
            for m in METRICS.values()
        ]
    if kind == "gates":
        return [{"id": g.id, "v": g.version, "what": g.summary.partition("\n")[0]} for g in GATES.values()]
    if kind == "observers":
        return [
            {"id": o.id, "v": o.version, "makes": evidence_id(o.makes), "frames": o.frames_in_words, "what": o.summary}
            for o in OBSERVERS.values()
        ]
    if kind == "evidence":
        return [{"id": id, "what": (inspect.getdoc(EVIDENCE[id]) or "").partition("\n")[0]} for id in EVIDENCE]
    if kind == "distances":
        return [{"id": id, "features": one.features, "what": one.description} for id, one in KINDS.items()]
    return [{"id": name, "title": read_set(name).title, "roles": len(load_roles(name))} for name in set_names()]


def card_of_id(id: str) -> Card:
    """All facts about the thing called `id`, whatever kind it is."""
    if id in METRICS:
        m = METRICS[id]
        return {
            "kind": "metric", "id": m.id, "version": m.version, "title": m.title, "description": m.description,
            "unit": m.unit, "range": list(m.range), "better": _direction_word(m.higher_is_better),
            "needs": _evidence_ids(m.needs), "gates": list(m.gates), "suites": list(m.suites),
            "family": m.family, "parameters": dict(m.params),
            "paper": m.paper, "upstream": m.upstream, "responds_to": list(m.responds_to), "blind_to": list(m.blind_to),
            "rewards_unchanged": m.rewards_unchanged, "noise_floor": m.noise_floor or None,
            "machines": cards.tolerance_lines(m.id), "spread": numeric_spread.card_lines_of_metric(m.id),
            "audit": cards.audit_lines(m.id, m.version),
        }  # fmt: skip
    if id in GATES:
        g = GATES[id]
        return {
            "kind": "gate", "id": g.id, "version": g.version, "title": g.title, "description": g.summary,
            "needs": _evidence_ids(g.needs), "parameters": dict(g.params),
        }  # fmt: skip
    if id in OBSERVERS:
        o = OBSERVERS[id]
        return {
            "kind": "observer", "id": o.id, "version": o.version, "description": inspect.getdoc(o.fn) or "",
            "sees": o.kind, "makes": evidence_id(o.makes), "frames": o.frames_in_words,
            "long_side": o.long_side_pixels(o.params), "reference": o.pairs, "inputs": list(o.inputs),
            "weights": list(o.weights), "parameters": dict(o.params),
        }  # fmt: skip
    if id in SUITES:
        suite = SUITES[id]
        groups = {name: ", ".join(ids) for name, ids in suite.groups.items()}
        return {"kind": "suite", "id": id, **suite.card, "groups": groups, "metrics": list(suite.metrics())}
    if id in EVIDENCE:
        kind = EVIDENCE[id]
        fields = {field.name: str(field.type) for field in dataclasses.fields(kind)}
        return {"kind": "evidence", "id": id, "description": inspect.getdoc(kind) or "", "fields": fields}
    if id in set_names():
        set_file = read_set(id)
        return {"kind": "set", "id": id, "title": set_file.title, "roles": set_file.roles}
    if id in KINDS:
        return _distance_card(id)
    every = [*METRICS, *GATES, *OBSERVERS, *SUITES, *EVIDENCE, *set_names(), *KINDS]
    near = did_you_mean_question(id, every)
    raise UsageError(
        f"nothing is called {id!r}; {near + ' ' if near else ''}`revisit list "
        "metrics|gates|observers|suites|evidence|sets|distances` shows what is"
    )


def _distance_card(id: str) -> Card:
    kind = KINDS[id]
    sizes = (400,) if kind.metric == "video_action" else (768, 1280)  # of the networks of the sets
    needed = {dimensions: kind.formula.least_scenes(dimensions) for dimensions in sizes}
    return {
        "kind": "distance", "id": id, "title": kind.title, "description": kind.description, "features": kind.features,
        "better": "lower", "compares": "the clips of a model, as a set, with the truth of their scenes",
        "least_scenes": ", ".join(f"{scenes} for {dimensions} dimensions" for dimensions, scenes in needed.items()),
        "interval": "95 %, over scenes", "recorded_by": kind.metric, "python": f"revisit.{id}(videos, reference)",
        "paper": kind.paper, "responds_to": list(kind.responds_to) or ["not measured"],
        "blind_to": ["memory: whether a place is the same after the camera came back", *kind.blind_to],
        "page": "docs/distances.md",
    }  # fmt: skip


def card_text(facts: Card) -> str:
    """A card as lines of text."""
    lines = [f"{facts['kind']} {facts['id']}" + (f", version {facts['version']}" if "version" in facts else "")]
    for name, value in facts.items():
        if name in ("kind", "id", "version") or value in ("", [], {}, None):
            continue
        if isinstance(value, list):
            value = "".join(f"\n    {line}" for line in value) if name in SENTENCES else ", ".join(map(str, value))
        if isinstance(value, dict):
            value = "".join(f"\n    {key}: {item}" for key, item in value.items())
        text = str(value).replace("\n", "\n  ") if name == "description" else str(value)
        lines.append(f"{name.replace('_', ' ')}: {text}")
    return "\n".join(lines)


def _direction_word(higher: bool | None) -> str:
    return {True: "higher", False: "lower", None: "describes"}[higher]


def _evidence_ids(kinds: tuple[type, ...]) -> list[str]:
    return ["case" if kind is Case else evidence_id(kind) for kind in kinds]
