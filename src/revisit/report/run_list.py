"""Several runs on one page, and two of them beside each other: what `revisit view RUN RUN …` opens with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from revisit.core import RevisitError
from revisit.core.text import printable_text
from revisit.report.standalone import standalone_page
from revisit.results.compare import Delta
from revisit.results.display import column_head, number, signed_number
from revisit.results.run import Run
from revisit.results.verdict import load_verdict
from revisit.runs.comparability import Side, compare_sides, read_sides
from revisit.web.templates import Context

LOOKS = 3  # clips to look at of each metric
HEADS = (  # of the table of two runs, and whether a column holds text
    ("Metric", True), ("First", False), ("Second", False), ("Difference", False), ("95 %", True), ("p (Holm)", False),
    ("Won : lost", True), ("Clips", False),
)  # fmt: skip


def list_page(runs: Mapping[str, Run]) -> tuple[str, str]:
    """The page with a line for each run, by the name that it has in an address; newest first. And its policy."""
    lines = run_lines(list(runs.items()))
    return standalone_page("runs.html", f"{len(lines)} runs", ("sort.js", "runs.js"), {"runs": lines})


def run_lines(runs: Sequence[tuple[str, Run]]) -> list[Context]:
    """What the list says of each run, the newest first."""
    return sorted((_run_entry(key, run) for key, run in runs), key=lambda line: str(line["started"]), reverse=True)


def _run_entry(key: str, run: Run) -> Context:
    """What the list says of a run; of one that cannot be read, why."""
    name = run.path.resolve().name
    if name == "run":  # as `eval` calls it beside the videos
        name = f"{run.path.resolve().parent.name}/{name}"
    line: Context = {"key": key, "name": printable_text(name), "path": printable_text(str(run.path))}
    try:
        calls = run.facts["invocations"]
        started = str(calls[0]["started"]) if calls else ""
        cases = [case for case in run.plan["cases"] if not case.get("truth")]
        going = not (calls and calls[-1]["finished"])
        return {
            **line,
            "started": started,
            "date": started[:16].replace("T", " "),
            "going": going,
            "suite": printable_text(run.facts["suite"]),
            "clips": len(cases),
            "models": printable_text(", ".join(sorted({case["model"] for case in cases}))),
            "verdict": "" if going else printable_text(_verdict(run)),
        }
    except RevisitError as error:
        unread: Context = dict.fromkeys(("started", "date", "suite", "clips", "models"), "")
        return {**line, **unread, "going": True, "verdict": printable_text(str(error))}


def _verdict(run: Run) -> str:
    sentence = str(load_verdict(run)["sentence"]) or "one model alone: nothing to compare it with"
    return sentence[:1].upper() + sentence[1:]


def diff_page(runs: Mapping[str, Run]) -> tuple[str, str]:
    """Two runs beside each other: how they were made, and every model of the second against one of the first."""
    keys, both = list(runs), list(runs.values())
    comparisons = compare_sides(_pairs(read_sides([str(run.path) for run in both]), both[0]))
    refused: dict[str, list[str]] = {}
    for one in comparisons:
        for metric, why in one.refusals.items():
            refused.setdefault(why, []).append(column_head(metric))
    names = [_run_entry(key, run)["name"] for key, run in runs.items()]
    content: Context = {
        "keys": keys,
        "names": names,
        "heads": HEADS,
        "settings": _differing_settings(*both),
        "pairs": [
            {
                "first": printable_text(one.first.entry.name),
                "second": printable_text(one.second.entry.name),
                "coverage": (*one.coverage.problems, *one.coverage.warnings),
                "rows": [_delta_row(delta) for delta in one.deltas],
            }
            for one in comparisons
        ],
        "refused": [(why, ", ".join(dict.fromkeys(what))) for why, what in refused.items()],
    }
    return standalone_page("diff.html", f"{names[1]} against {names[0]}", ("sort.js",), content)


def _pairs(sides: Sequence[Side], first: Run) -> list[tuple[Side, Side]]:
    """Models of one name; where the runs share none, all of the second against the first of the first."""
    mine = [side for side in sides if side.run.path == first.path]
    yours = [side for side in sides if side.run.path != first.path]
    same = [(one, other) for other in yours for one in mine if one.model == other.model]
    return same or [(mine[0], other) for other in yours]


def _differing_settings(first: Run, second: Run) -> list[tuple[str, str, str]]:
    """What two runs say differently of how they were made."""

    def settings_of(run: Run) -> dict[str, str]:
        facts, request = run.facts, run.facts.get("request") or {}
        judge = facts["protocol"].get("judge") or {}
        return {
            "Revisit": facts["revisit"],
            "Source": str(request.get("source", "")),
            "Suite": facts["suite"],
            "Protocol": f"{facts['protocol']['name']}:{facts['protocol']['hash']}",
            "Observers": str(facts.get("observed_by") or facts["set"]),
            "Judge": str(judge.get("model", "none")),
            "Models": ", ".join(sorted({case["model"] for case in run.plan["cases"] if not case.get("truth")})),
            "Clips": str(sum(not case.get("truth") for case in run.plan["cases"])),
            "Started": str(facts["invocations"][0]["started"])[:16].replace("T", " ") if facts["invocations"] else "",
        }

    one, other = settings_of(first), settings_of(second)
    return [(name, printable_text(one[name]), printable_text(other[name])) for name in one if one[name] != other[name]]


def _delta_row(delta: Delta) -> Context:
    cells = [
        (delta.means[0], number(delta.means[0])),
        (delta.means[1], number(delta.means[1])),
        (delta.difference, signed_number(delta.difference)),
        ("", delta.interval_text),
        ("" if delta.corrected is None else delta.corrected, delta.p_text or "–"),
        ("", f"{delta.wins} : {delta.losses}"),
        (delta.clips, f"{delta.clips} of {delta.scenes} {'scene' if delta.scenes == 1 else 'scenes'}"),
    ]
    return {
        "title": column_head(delta.metric),
        "cells": [
            {"value": value, "text": text, "word": delta.word if place == 2 else ""}
            for place, (value, text) in enumerate(cells)
        ],
        "looks": [
            {
                "name": printable_text(look.name),
                "q": quote(look.sample, safe=""),
                "difference": signed_number(look.difference),
            }
            for look in [look for look in delta.looks if look.difference][:LOOKS]
        ],
    }
