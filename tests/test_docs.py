"""The documentation tells the truth about the code."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from revisit.catalog import card
from revisit.core import GATES, METRICS, OBSERVERS

PROJECT = Path(__file__).parents[1]
# Metrics of the package itself; tests register more of their own in the same process.
OURS = [id for id in METRICS if METRICS[id].fn.__module__.startswith("revisit.")]


def test_pages_from_the_code_are_up_to_date(monkeypatch):
    spec = importlib.util.spec_from_file_location("make_cards", PROJECT / "docs/make_cards.py")
    assert spec and spec.loader
    cards = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cards)
    for kind in (METRICS, GATES, OBSERVERS):
        ours = {id: thing for id, thing in kind._things.items() if thing.fn.__module__.startswith("revisit.")}
        monkeypatch.setattr(kind, "_things", ours)
    pages = cards.pages()
    assert set(pages) >= set((PROJECT / "docs/metrics").glob("*.md")), "a page that nothing writes any more"
    for path, text in pages.items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run `make docs`"


@pytest.mark.parametrize("id", OURS)
def test_every_card_is_complete(id):
    metric = METRICS[id]
    assert metric.title and metric.unit and metric.summary
    assert metric.summary.endswith(".") or ":" in metric.summary or len(metric.summary) > 20
    assert metric.higher_is_better is None or metric.responds_to or metric.family == "fidelity"


@pytest.mark.parametrize("id", OURS)
def test_every_card_has_a_tolerance(id):
    facts = card(id)
    assert any("tolerance" in line for line in [*facts["machines"], *facts["spread"]]), id


def test_links_between_pages_lead_somewhere():
    for page in [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted((PROJECT / "docs").glob("**/*.md"))]:
        for link in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not link.startswith(("http:", "https:", "mailto:")):
                assert (page.parent / link).exists(), f"{page.name} links to {link}"
