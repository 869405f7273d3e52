"""Several runs on one page, and two of them beside each other: what `revisit view RUN RUN …` opens with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from revisit.core import RevisitError
from revisit.core.grouping import group_items
from revisit.core.text import printable_text
from revisit.report.standalone import html_and_policy_of_template
from revisit.results.display import observed_by_or_set, score_title_with_arrow
from revisit.results.run import Run
from revisit.results.verdict import load_verdict
from revisit.runs.comparability import Side, compare_sides, read_sides
from revisit.web.templates import Context


def run_list_page(runs: Mapping[str, Run]) -> tuple[str, str]:
    """The page with a line for each run, by the name that it has in an address; newest first. And its policy."""
    lines = run_entries_newest_first(list(runs.items()))
    return html_and_policy_of_template("runs.html", f"{len(lines)} runs", ("sort.js", "runs.js"), {"runs": lines})


def run_entries_newest_first(runs: Sequence[tuple[str, Run]]) -> list[Context]:
    """What the list says of each run, the newest first."""
    return sorted((_run_entry(key, run) for key, run in runs), key=lambda line: str(line["started"]), reverse=True)


def _run_name(run: Run) -> str:
    """The name of its folder; one that is called `run`, as `eval` calls it beside the videos, with the folder above."""
    path = run.path.resolve()
    return f"{path.parent.name}/{path.name}" if path.name == "run" else path.name


def _run_entry(key: str, run: Run) -> Context:
    """What the list says of a run; of one that cannot be read, why."""
    line: Context = {"key": key, "name": printable_text(_run_name(run)), "path": printable_text(str(run.path))}
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
            "verdict": "" if going else printable_text(_verdict_sentence(run)),
        }
    except RevisitError as error:
        unread: Context = dict.fromkeys(("started", "date", "suite", "clips", "models"), "")
        return {**line, **unread, "going": True, "verdict": printable_text(str(error))}


def _verdict_sentence(run: Run) -> str:
    sentence = str(load_verdict(run)["sentence"]) or "one model alone: nothing to compare it with"
    return sentence[:1].upper() + sentence[1:]


def diff_page(runs: Mapping[str, Run]) -> tuple[str, str]:
    """Two runs beside each other: how they were made, and every model of the second against one of the first."""
    both = list(runs.values())
    comparisons = compare_sides(_sides_to_compare(read_sides([str(run.path) for run in both]), both[0]))
    refused = [(why, score_title_with_arrow(metric)) for one in comparisons for metric, why in one.refusals.items()]
    names = [_run_name(run) for run in both]
    content: Context = {
        "keys": list(runs),
        "names": names,
        "settings": _differing_settings(*both),
        "comparisons": comparisons,
        "refused": group_items(refused, lambda one: one[0]),
    }
    return html_and_policy_of_template("diff.html", f"{names[1]} against {names[0]}", ("sort.js",), content)


def _sides_to_compare(sides: Sequence[Side], first: Run) -> list[tuple[Side, Side]]:
    """Models of one name; where the runs share none, all of the second against the first of the first."""
    mine = [side for side in sides if side.run.path == first.path]
    yours = [side for side in sides if side.run.path != first.path]
    same = [(one, other) for other in yours for one in mine if one.model == other.model]
    return same or [(mine[0], other) for other in yours]


def _differing_settings(first: Run, second: Run) -> list[tuple[str, str, str]]:
    """What two runs say differently of how they were made."""

    def settings_of_run(run: Run) -> dict[str, str]:
        facts, request = run.facts, run.facts.get("request") or {}
        judge = facts["protocol"].get("judge") or {}
        return {
            "Revisit": facts["revisit"],
            "Source": str(request.get("source", "")),
            "Suite": facts["suite"],
            "Protocol": f"{facts['protocol']['name']}:{facts['protocol']['hash']}",
            "Observers": observed_by_or_set(facts),
            "Judge": str(judge.get("model", "none")),
            "Models": ", ".join(sorted({case["model"] for case in run.plan["cases"] if not case.get("truth")})),
            "Clips": str(sum(not case.get("truth") for case in run.plan["cases"])),
            "Started": str(facts["invocations"][0]["started"])[:16].replace("T", " ") if facts["invocations"] else "",
        }

    one, other = settings_of_run(first), settings_of_run(second)
    return [(name, one[name], other[name]) for name in one if one[name] != other[name]]
