"""Whom a run owes a citation: its benchmark, the papers of metrics that have scores, and the networks behind them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from revisit._version import __version__
from revisit.core import METRICS, SUITES, Metric, Observer
from revisit.engine.dependencies import observed_ids_needed_by
from revisit.observers.sets import load_roles
from revisit.results.file_types import Details
from revisit.results.run import Run

ARXIV = re.compile(r"\b\d{4}\.\d{5}\b")


@cache
def load_bibliography() -> dict[str, Details]:
    """All papers that are known, by the key of their entry: those of the house, and those that suites' cards list."""
    import yaml

    citations: dict[str, Details] = yaml.safe_load((files(__package__) / "citations.yaml").read_text("utf-8"))
    for suite in SUITES.values():
        for key, entry in (suite.card.get("papers") or {}).items():
            citations[key] = {**entry, "for": {"suites": [suite.id]}}
    return citations


def citations_of_run(run: Run) -> dict[str, list[str]]:
    """What a run used, by the key of the paper that is to be cited for it; the benchmark comes first."""
    citations: dict[str, list[str]] = {}

    def add_use(keys: Iterable[str], what: str) -> None:
        for key in keys:
            if what not in citations.setdefault(key, []):
                citations[key].append(what)

    suite = run.facts["suite"]
    add_use(keys_of_papers_for("suites", suite), f"the benchmark {SUITES[suite].title}" if suite in SUITES else suite)
    scored = sorted({record.question for record in run.results.records if record.status == "scored"} & set(METRICS))
    for id in scored:
        add_use(metric_citation_keys(METRICS[id]), id)
    made_by = run.plan.get("made_by", {})
    for id in scored:
        chosen = made_by.get(id, {}).get("set", run.facts["set"])
        for observer in required_observers(METRICS[id], chosen):
            add_use(keys_of_papers_for("observers", observer.id), observer.id)
            for weight in observer.weights:
                add_use(keys_of_papers_for("weights", weight), f"the network {weight}")
    return citations


def metric_citation_keys(metric: Metric) -> list[str]:
    """Keys of the papers that a metric's card names."""
    numbers = ARXIV.findall(metric.paper)
    return [
        key
        for key, entry in load_bibliography().items()
        if entry.get("eprint") in numbers or any(name in metric.paper for name in entry["for"].get("named", ()))
    ]


def keys_of_papers_for(kind: str, id: str) -> list[str]:
    """Keys of the papers of one of the `suites`, `observers` or `weights`."""
    return [key for key, entry in load_bibliography().items() if id in entry["for"].get(kind, ())]


def required_observers(metric: Metric, observer_set: str) -> list[Observer]:
    """Who makes the evidence of a metric in an observer set."""
    roles = load_roles(observer_set)
    return [roles[role] for role in observed_ids_needed_by(metric, optional=False) if role in roles]


def bibtex_text(uses_by_paper: Mapping[str, list[str]]) -> str:
    """Entries in BibTeX, each below what it is cited for; Revisit itself comes first."""
    ours = {"title": "Revisit: how well does a video world model remember?", "author": "{The Revisit contributors}"}
    text = _bibtex_entry(
        "software", "revisit", {**ours, "version": __version__, "year": 2026}, ["the evaluation itself"]
    )
    for key, what in uses_by_paper.items():
        paper = {name: value for name, value in load_bibliography()[key].items() if name != "for"}
        if "eprint" in paper:
            paper |= {"archiveprefix": "arXiv", "url": f"https://arxiv.org/abs/{paper['eprint']}"}
        kind = "article" if "journal" in paper else "inproceedings" if "booktitle" in paper else "misc"
        text += "\n" + _bibtex_entry(kind, key, paper, what)
    return text


def _bibtex_entry(kind: str, key: str, fields: Details, what: list[str]) -> str:
    # Capitals of titles and names are kept by doubled braces.
    lines = [
        f"  {name} = {{{{{value}}}}}," if name == "title" else f"  {name} = {{{value}}},"
        for name, value in fields.items()
    ]
    return "\n".join([f"% for {', '.join(what)}", f"@{kind}{{{key},", *lines, "}"]) + "\n"
