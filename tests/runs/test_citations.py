"""`revisit show --bibtex`: everything that a run may use has its paper, and only what was used is cited."""

from __future__ import annotations

import re

import pytest

from revisit.core import METRICS, SUITES
from revisit.runs.citations import (
    bibtex_text,
    keys_of_papers_for,
    load_bibliography,
    metric_citation_keys,
    required_observers,
)
from revisit.weights.lock import read_lock_entries as weights

# Titles that the bibliographies of MBench, MemoBench and WRBench, or these papers themselves, print.
PRINTED = (
    "lu2026wrbench", "zhang2026mbench", "chen2026memobench", "ye2026mind", "wang2004ssim", "zhang2018lpips",
    "kirillov2023sam", "teed2020raft", "yang2024depth", "oquab2023dinov2", "schuhmann2022laion", "wang2023clipiqa",
    "xu2023imagereward", "carion2025sam3",
)  # fmt: skip


def test_every_metric_suite_and_network_with_a_paper_has_its_entry():
    for metric in METRICS.values():
        if metric.paper and metric.fn.__module__.startswith("revisit."):
            assert metric_citation_keys(metric), f"{metric.id} names {metric.paper!r}; add it to engine/citations.yaml"
    for suite in SUITES.values():
        if "citation" in suite.card:
            assert [
                key
                for key in keys_of_papers_for("suites", suite.id)
                if load_bibliography()[key]["eprint"] in suite.card["citation"]
            ], suite.id
    cited = {id for entry in load_bibliography().values() for id in entry["for"].get("weights", ())}
    assert cited == set(weights())


def test_titles_are_those_that_papers_print(shared):
    def plain(text: str) -> str:
        return re.sub(r"[^a-z0-9]", "", text.lower())

    papers = [shared.parent / f"papers/{name}.txt" for name in ("mbench", "memobench", "wrbench")]
    if not all(paper.is_file() for paper in papers):
        pytest.skip("needs the papers beside the checkout")
    printed = plain("".join(paper.read_text(encoding="utf-8") for paper in papers))
    assert [key for key in PRINTED if plain(load_bibliography()[key]["title"]) not in printed] == []


def test_a_run_cites_what_it_used(revisit, make_clip, tmp_path):
    for model, seed in (("truth", 0), ("mine", 1)):
        make_clip(tmp_path / f"videos/{model}/a.mp4", seed=seed)
    revisit("import", "scan", "videos", "--reference", "truth")
    revisit("eval", "videos", "-m", "ssim,lpips,flicker", "--no-report", "--workers", 0)
    text = revisit("show", "runs/videos", "--bibtex").stdout
    keys = re.findall(r"@\w+\{(\w+),", text)
    assert keys == ["revisit", "wang2004ssim"]  # LPIPS has no score here, and so no citation
    assert "% for ssim\n" in text and text.count("{") == text.count("}")
    assert revisit("show", "runs/videos", "--bibtex", "--out", "refs.bib").stdout == "refs.bib\n"
    assert (tmp_path / "refs.bib").read_text(encoding="utf-8") == text
    assert "is not a run" in revisit("show", "videos", "--bibtex", check=2).stderr


def test_names_keep_their_letters():
    assert "author = {Souček, Tomáš and Lokoč, Jakub}," in bibtex_text({"soucek2020transnet": ["shot_changes"]})


@pytest.mark.parametrize(
    ("metric", "chosen", "expected"),
    [("lpips", "lite", set()), ("lpips", "small", {"lpips_alex"}), ("memo_identity", "paper", {"dinov2-base"})],
)
def test_networks_are_those_of_the_set(metric, chosen, expected):
    assert {
        weight for observer in required_observers(METRICS[metric], chosen) for weight in observer.weights
    } == expected
