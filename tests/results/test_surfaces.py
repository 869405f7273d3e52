"""One name, one number: every surface of one run shows the same score under the same name."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import revisit
from revisit.core import METRICS, SUITES, Case, Clip, Record, import_registering_modules
from revisit.engine.dataset_cases import mark_and_add_truth_cases
from revisit.engine.run_summary import current_results, summarise_results
from revisit.report.live_server import diff_page
from revisit.report.pages import RunPages
from revisit.report.site import boards_of_bundles
from revisit.report.verdict import verdict_content
from revisit.report.videos import Videos
from revisit.report.write_html import page_html_and_policy
from revisit.results import Results
from revisit.results.ceilings import metrics_changed_by_truth
from revisit.results.display import number_text, round_for_page, score_title
from revisit.results.record_files import case_to_json, record_to_line
from revisit.results.run import Run
from revisit.results.score_names import add_held_suffix
from revisit.results.verdict import load_verdict
from revisit.runs.bundle_check import BundleCheck
from revisit.runs.bundles import Bundle
from tests.conftest import in_this_process
from tests.run_directories import TAG, make_scenes

import_registering_modules()
SCENES, TAKES = ("cup", "door", "lamp", "sofa"), ("a", "b")
IDS = ("target_reappearance", "return_consistency", "event_outcome", "psnr")
GATES = ("view_return", "look_away")
# What each model scores in IDS: one goes on as it should, one brings back the first view, one is in between. The truth
# returns changed, so that the reset looks more like its first view than the truth does.
SCORES = {
    "goes-on": (1.0, 0.46, 0.93, 31.0),
    "resets": (1.0, 0.97, 0.05, 33.0),
    "half": (1.0, 0.50, 0.64, 22.0),
    "truth": (1.0, 0.64, None, None),
}


def _answers(case: Case, place: int) -> Iterator[Record]:
    """The answers about a clip; scenes and takes differ a little, and one take of `half` was not scored."""
    facts: dict[str, Any] = {"protocol": TAG, "version": 1}
    yield Record(case, "view_return", True, "open", label="left, returned", **facts)
    yield Record(case, "look_away", True, "open", label="looks away", **facts)
    for id, value in zip(IDS, SCORES["truth" if case.truth else case.model], strict=True):
        if value is None or (case.model == "half" and place == 5 and id != "psnr"):
            reason = revisit.Reason("undecided", "nobody can tell")
            yield Record(case, id, False, "unscored", reason=reason, **facts)
        else:
            step = 0.004 * place if id != "target_reappearance" else 0.0
            yield Record(case, id, False, "scored", value - step, **facts)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run of three models on two takes of each of four scenes, with the truth."""
    folder = tmp_path_factory.mktemp("surfaces")
    path = make_scenes(folder, list(SCORES)[:3], SCENES, pictures=False)
    cases = mark_and_add_truth_cases(
        [
            Case(
                f"{scene}-{take}@{model}#0", "folder", model, scene, Clip(Path(f"{model}/{scene}-{take}.mp4")),
                reference=Clip(Path(f"gt/{scene}-{take}.mp4")), annotations={"id": f"{scene}-{take}", "event": True},
            )
            for model in list(SCORES)[:3]
            for scene in SCENES
            for take in TAKES
        ]
    )  # fmt: skip
    places = {f"{scene}-{take}": k for k, (scene, take) in enumerate((s, t) for s in SCENES for t in TAKES)}
    records = [answer for case in cases for answer in _answers(case, places[case.clip.path.stem])]
    plan, facts = (json.loads((path / f"{name}.json").read_text()) for name in ("plan", "run"))
    tags = dict.fromkeys(IDS, TAG)
    extra = {"digest": "dd" * 32, "evidence": {}, "absent": {}, "reference_evidence": {}}
    plan |= {"metrics": tags, "gates": dict.fromkeys(GATES, TAG), "total_cases": len(cases)}
    plan["cases"] = [{**case_to_json(case), **extra, "reference_digest": case.clip.path.stem} for case in cases]
    facts["protocol"] |= {"metrics": tags, "gates": plan["gates"]}
    (path / "plan.json").write_text(json.dumps(plan))
    (path / "run.json").write_text(json.dumps(facts))
    (path / "records.jsonl").write_text("".join(json.dumps(record_to_line(record)) + "\n" for record in records))
    summary = summarise_results(Run(path).results, SUITES["folder"], plan).content
    known = json.loads((path / "summary.json").read_text())
    (path / "summary.json").write_text(json.dumps({**known, **summary}))
    return Run(path)


def _expected(results: Results) -> dict[tuple[str, str], str]:
    """(model, title) -> what must be shown, from the scores of single clips and the rule of docs/truth.md."""
    shown = {}
    for model, part in results.groups("model").items():
        clips: list[tuple[Case, Mapping[str, Any]]] = [(case, part.of(case)) for case in part.cases]
        for id in IDS:
            measured = [one[id].value for _, one in clips if one[id].scored]
            shown[model, METRICS[id].title] = number_text(sum(measured) / len(measured))
        held: dict[str, list[float]] = {id: [] for id in IDS[:2]}
        for case, one in clips:
            truth: Mapping[str, Any] = results.of(results.truth_of(case) or "")
            if one["event_outcome"].scored:
                outcome = one["event_outcome"].value
                back, look = one["target_reappearance"].value, one["return_consistency"].value
                held["target_reappearance"].append(min(back, outcome) if outcome < 0.5 else back)
                held["return_consistency"].append(min(outcome, 1 - abs(look - truth["return_consistency"].value)))
        for id, values in held.items():
            shown[model, f"{METRICS[id].title}, held to the truth"] = number_text(sum(values) / len(values))
    return shown


def _board(text: str) -> dict[tuple[str, str], str]:
    """(model, title) -> mean of a CSV of boards."""
    rows = csv.DictReader(StringIO(text))
    return {(row["model"], row["column"]): number_text(float(row["value"])) for row in rows if row["value"]}


def _terminal(path: str, models: list[str]) -> dict[tuple[str, str], str]:
    """(model, title) -> mean of the table of all scores on a wide terminal: metrics down, models across."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rich.console.Console", lambda **named: Console(**{**named, "width": 400}))
        text = in_this_process(["show", path, "--all"]).stdout
    lines = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    heads = next(line[1:] for line in lines if line[0] == "mean [95 %] (scored/all)" and line[1] in models)
    return {
        (model, re.sub(r" [↑↓]$", "", title)): re.split(r" [\[(]", cell)[0]
        for title, *cells in lines
        if cells and re.search(r"\(\d+/\d+", cells[0])
        for model, cell in zip(heads, cells, strict=False)
        if model in models and len(cells) == len(heads)
    }


def _surfaces(run: Run) -> dict[str, dict[tuple[str, str], str]]:
    """Surface -> (model, title) -> number, of everything that shows a mean of a model."""
    path, results, found = str(run.path), run.results, {}
    found["scalars"] = {
        (name.split("/")[0], score_title(name.split("/")[-1])): number_text(mean)
        for name, mean in results.scalars().items()
    }
    ids = [*IDS, *(add_held_suffix(id) for id in IDS[:2])]
    found["Results.mean"] = {
        (model, score_title(id)): number_text(cell.mean) for id in ids for model, cell in results.mean(id).items()
    }
    for command in ("leaderboard", "table"):
        done = in_this_process([command, path, "--format", "csv", *(["--no-interval"] if command == "table" else [])])
        assert done.returncode == 0, done.stderr
        found[command] = _board(done.stdout)
    done = in_this_process(["table", path, "--format", "csv", "--no-interval", *(w for id in ids for w in ("-m", id))])
    found["table -m"] = _board(done.stdout)
    found["show --all"] = _terminal(path, results.models)
    summary = run.summary
    found["summary.json"] = {
        (model, score_title(name(id))): number_text(cell["mean"])
        for model, entry in summary["models"].items()
        for kind, name in (("scores", str), ("held", add_held_suffix))
        for id, cell in entry[kind].items()
    }
    found["verdict"] = {
        (
            place["model"],
            score_title(add_held_suffix(one["metric"]) if one["near_truth"] else one["metric"]),
        ): number_text(place["cell"]["mean"])
        for one in load_verdict(run)["answers"]
        for place in one["places"]
    }
    pages = RunPages(run, current_results(run), Videos(run.path / "report", "copy"))
    shown = re.findall(
        r'<table class="scores still headline">(.*?)</table>', page_html_and_policy(pages, {})[0], re.DOTALL
    )
    titles = re.findall(r'<span class="unit">([^<]*) <a class="info"', shown[0])
    found["page"] = {
        (model, title): text
        for model, cells in re.findall(r'<button [^>]*data-model="([^"]*)"(.*?)</tr>', shown[0], re.DOTALL)
        for title, text in zip(titles, re.findall(r'<span class="mean[^>]*>([^<]*)<', cells), strict=True)
    }
    about = {"suite": "folder", "dataset": "d", "hash": "h", "protocol": "corrected", "set": "lite"}
    lines = tuple(json.loads(line) for line in (run.path / "records.jsonl").read_text().splitlines())
    bundle = Bundle(Path("mine.zip"), {**about, "models": results.models}, run.facts, run.plan, lines)  # type: ignore[typeddict-item, typeddict-unknown-key]
    (board,) = boards_of_bundles([bundle], {"mine": BundleCheck(1)})
    found["site"] = {
        (row.model, column.title): number_text(row.cell(column).mean)
        for row in board.rows
        for column in board.columns
        if column.title != "places"
    }
    html, _ = diff_page({"1": run, "2": Run(_copy_of(run))})
    found["two runs"] = {
        (model, re.sub(" [↑↓]$", "", title)): first
        for model, table in re.findall(r"<h2><bdi>[^<]*:([^<:]+)</bdi> against.*?<tbody>(.*?)</tbody>", html, re.DOTALL)
        for title, first in re.findall(r'<th scope="row"[^>]*>([^<]*)</th><td[^>]*>([^<]*)</td>', table)
    }
    return found


def _copy_of(run: Run) -> Path:
    copy = run.path.with_name("copy")
    return copy if copy.exists() else Path(shutil.copytree(run.path, copy))


def test_every_surface_shows_the_same_number_under_the_same_name(run: Run) -> None:
    expected = _expected(run.results)
    assert (
        expected["resets", "Same view after return"] != expected["resets", "Same view after return, held to the truth"]
    )
    for surface, shown in _surfaces(run).items():
        known = {name: value for name, value in shown.items() if name in expected}
        assert known, surface
        assert known == {name: expected[name] for name in known}, surface
        titles = {title for _, title in shown}
        assert "Target reappears, held to the truth" in titles, surface
        if surface in ("leaderboard", "scalars", "show --all", "summary.json", "table -m", "Results.mean"):
            assert known.keys() == expected.keys(), surface


def test_names_are_those_of_scores_that_differ(run: Run) -> None:
    assert metrics_changed_by_truth(run.results) == {"target_reappearance", "return_consistency"}
    alone = replace_scores(run.results)
    assert metrics_changed_by_truth(alone) == frozenset()  # no truth, and nothing happened: what is measured counts
    assert "memory/return_consistency.held" not in alone.scalars()


def replace_scores(results: Results) -> Results:
    """One model without truths and events."""
    cases = [replace(case, reference=None, annotations={}) for case in results.where(model="half").cases]
    return Results(cases, [Record(case, "return_consistency", False, "scored", 0.5) for case in cases])


def test_two_models_are_compared_under_the_same_names(run: Run) -> None:
    done = in_this_process(["compare", str(run.path), "goes-on", "resets", "--json"])
    deltas = {delta["metric"]: delta for delta in json.loads(done.stdout)["deltas"]}
    expected = _expected(run.results)
    assert {"target_reappearance.held", "return_consistency.held", "event_outcome"} <= deltas.keys()
    for id, delta in deltas.items():
        for model, mean in zip(("goes-on", "resets"), delta["means"], strict=True):
            assert number_text(mean) == expected[model, score_title(id)]
    named = in_this_process(["compare", str(run.path), "goes-on", "resets", "--json", "-m", "return_consistency"])
    (delta,) = json.loads(named.stdout)["deltas"]
    assert number_text(delta["means"][1]) == expected["resets", "Same view after return"]
    two_runs = _surfaces(run)["two runs"]  # by default the scores that rank, as the command's
    assert {title for model, title in two_runs if model == "resets"} == set(map(score_title, deltas))


def test_clips_on_the_page_bear_the_name_of_the_score_that_they_show(run: Run) -> None:
    pages = RunPages(run, current_results(run), Videos(run.path / "report", "copy"))
    heads: Any = pages.index_content()["metrics"]
    for case in run.results.cases:
        scores: Any = pages.clip_entry(case).scene_view_content()["scores"]
        for head, shown in zip(heads, scores, strict=True):
            id = next(name for name in (add_held_suffix(head["id"]), head["id"]) if score_title(name) == head["title"])
            value = run.results.score(case, id)
            assert (shown[0] is None) == (value is None)
            assert value is None or shown[1] == number_text(value)


def test_a_question_that_another_caps_is_one_question(run: Run) -> None:
    answers = {answer["question"]["ask"]: answer for answer in load_verdict(run)["answers"]}
    look, outcome = answers["Does it look the same?"], answers["Did it go on as it should?"]
    assert outcome["places"] and not look["places"] and not look["metric"]
    assert look["sentence"].startswith("see “Did it go on as it should?”; ") and "15 of 23 clips" in look["sentence"]
    pages = RunPages(run, current_results(run), Videos(run.path / "report", "copy"))
    cards = verdict_content(pages.verdict, run.summary)["answers"]
    questions = [card["answer"].question for card in cards]
    assert [question.ask for question in questions if question.memory] == [
        ask for ask, answer in answers.items() if answer["question"]["memory"] and answer is not look
    ]


@pytest.mark.parametrize("value", [0.19498, 0.0995, 0.099499, 0.29499999, 104.49998, -0.004449, 0.5, 1e-12, 3.0])
def test_what_a_page_rounds_first_is_written_as_elsewhere(value: float) -> None:
    for digits in (3, 4):
        assert number_text(round_for_page(value, digits)) == number_text(value)
    assert round_for_page(0.123456, 3) == 0.123
