"""Submission: the zip file that the public leaderboard takes, made from a run, and its check (docs/mbench.md).

At the root lies `leaderboard_submission.json` (`REQUIRED` and `OPTIONAL` fields; scores from 0 to 100), below
`verification/{entity,environment,causal}/` the files that prove it; each summary says which protocol, set and judge
made it.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from revisit.core import Clip, MediaError, UsageError
from revisit.core.text import parse_json, parse_json_or_none, parse_numbered_json_lines
from revisit.media import clip_digest
from revisit.media.files import atomic_write_path
from revisit.results import Results
from revisit.suites.mbench.dataset import MBenchDataset
from revisit.suites.mbench.names import AXES, BY_ID, TRIGGER, dimensions_by_upstream_name, dimensions_of_setting
from revisit.suites.mbench.scoring import item_id_of_entry

FILE = "leaderboard_submission.json"
TYPES = {"T": "text-conditioned", "A": "action-conditioned"}
REQUIRED = ("model_name", "model_link", "model_type", "total_m_score")
OPTIONAL = ("entity_score", "environment_score", "causal_score", "trigger_coverage", "memory_reliability")
PARTS = ("summary.json", "items.jsonl", "units.jsonl")
LARGEST = 256 << 20  # bytes of one member
DECIMALS = 4


def submission_content(summary: Mapping[str, Any], model: str, name: str, link: str) -> dict[str, str | float]:
    """What the submission of a model says, from the summary of a run; the lower end where triggers are unknown."""
    part = summary.get("mbench")
    if part is None:
        raise UsageError("this is not a run of the suite mbench; `revisit mbench eval` makes one")
    row = next((row for row in part["ranking"] if row["model"] == model), None)
    if row is None:
        raise UsageError(f"the run has no model {model!r}; it has {', '.join(r['model'] for r in part['ranking'])}")
    if row["rank"] is None:
        raise UsageError(f"{model} cannot be submitted: {row['reason']}")
    own = row["own"]
    if own["total"] is None:
        missing = [axis for axis in AXES if own[axis] is None]
        raise UsageError(
            f"{model} cannot be submitted: a total needs all dimensions of MBench-{part['setting']}, but some have no "
            f"score ({', '.join(missing)})"
        )
    content: dict[str, str | float] = {
        "model_name": name or model,
        "model_link": link,
        "model_type": TYPES[part["setting"]],
        "total_m_score": round(own["total"][0], DECIMALS),
        **{f"{axis}_score": round(ends[0], DECIMALS) for axis in AXES if (ends := own[axis]) is not None},
    }
    # Over the dimensions that the axes are over: a total leaves out what its axis leaves out.
    mine = [
        entry["models"][model]
        for metric_id, entry in part["dimensions"].items()
        if model in entry["models"] and part["setting"] in BY_ID[metric_id].averaged
    ]
    coverages = [one["coverage"][0] for one in mine if one["coverage"] is not None]
    reliabilities = [one["reliability"] for one in mine if one["reliability"] is not None]
    for key, values in (("trigger_coverage", coverages), ("memory_reliability", reliabilities)):
        if values:
            content[key] = round(100 * sum(values) / len(values), DECIMALS)
    return content


def partial_run_reason(
    data: MBenchDataset, facts: Mapping[str, Any], plan: Mapping[str, Any], results: Results, model: str
) -> str:
    """Why a run is not the whole of a model's list under all dimensions, one protocol and the present videos; or ""."""
    last = (facts.get("invocations") or [{}])[-1]
    if last.get("finished") is None:
        return "it was stopped early; run the same command again"
    if plan.get("partial") is not None:
        return f"--limit took {len(plan['cases'])} of {plan['total_cases']} items"
    mine = results.where(model=model)
    item_ids = {item_id_of_entry(entry) for entry in mine.entries}
    items = data.items_of_model(model)
    absent = [item.id for item in items if item.id not in item_ids]
    if absent:
        count = len(items) - len(absent)
        return f"it has {count} of the {len(items)} items of the model's list; {absent[0]} is missing"
    if mine.rejected:
        first = mine.rejected[0]
        return (
            f"{len(mine.rejected)} of the {len(mine.entries)} items of the model's list have no video that can be "
            f"used, such as {item_id_of_entry(first)} ({first.reason})"
        )
    for title, record_id, subset in _titles_ids_and_subsets(data.setting):
        expected = sum(subset in (None, case.subset) for case in mine.cases)
        records = mine.records_for(record_id)
        if len(records) < expected:
            return f"{title} was evaluated on {len(records)} of {expected} items"
        protocols = sorted({record.protocol for record in records})
        if len(protocols) > 1:
            return f"{title} was scored under several protocols ({', '.join(protocols)})"
    present = {f"{item.id}@{model}": item.video for item in items}
    scored = {case["id"]: case["digest"] for case in plan["cases"] if case["model"] == model}
    changed = [id for id, digest in scored.items() if not _video_is_unchanged(present.get(id), digest)]
    if changed:
        return f"{len(changed)} videos have changed since they were scored, such as that of {changed[0]}"
    return ""


def _titles_ids_and_subsets(setting: str) -> list[tuple[str, str, str | None]]:
    """Everything that a submission rests on: a title, our id, and the subset it is asked of."""
    trigger: list[tuple[str, str, str | None]] = [("the trigger", TRIGGER, None)] if setting == "T" else []
    return [*trigger, *((d.title.lower(), d.id, d.subset) for d in dimensions_of_setting(setting))]


def _video_is_unchanged(video: Path | None, scored_digest: str | None) -> bool:
    """Whether a video is still the one that was scored; one that cannot be read never was."""
    if scored_digest is None:
        return True
    try:
        return video is not None and clip_digest(Clip(video)) == scored_digest
    except MediaError:
        return False


def protocol_and_maker_lines(plan: Mapping[str, Any], setting: str) -> list[str]:
    """Which protocol, set and judge made the numbers, in lines."""
    by: dict[str, list[str]] = {}
    for title, metric_id, _ in _titles_ids_and_subsets(setting):
        if metric_id in plan.get("made_by", {}):
            maker = plan["made_by"][metric_id]
            who = f"set {maker['set']}" + (f", judge {maker['judge']}" if "judge" in maker else "")
            by.setdefault(f"protocol {plan['protocol']}, {who}", []).append(title)
    return [f"{who}: {', '.join(titles)}" for who, titles in by.items()]


def write_submission_zip(run: Path, path: Path, content: Mapping[str, str | float], model: str, setting: str) -> None:
    """Write the zip file with the files that prove the scores; the same run gives the same bytes.

    UsageError where it would not be valid; what lay there stays.
    """
    members = {FILE: json.dumps(content, indent=1, ensure_ascii=False) + "\n"}
    for axis in AXES:
        files = _verification_files(run, setting, axis, model)
        members |= {f"verification/{axis}/{part}": text for part, text in files.items()}
    with atomic_write_path(path) as temporary:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in members.items():
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), text, zipfile.ZIP_DEFLATED)
        if faults := submission_problems(temporary):
            raise UsageError(faults[0])


def _verification_files(run: Path, setting: str, axis: str, model: str) -> dict[str, str]:
    """The files of an axis: those of its metrics, one after the other, with the lines of one model.

    What lies there of the other setting is of another run.
    """
    summaries: dict[str, object] = {}
    lines: dict[str, list[str]] = {"items.jsonl": [], "units.jsonl": []}
    for name, (of, dimension) in dimensions_by_upstream_name().items():
        folder = run / "metrics" / name
        if (of, dimension.axis) != (setting, axis) or not (folder / "summary.json").is_file():
            continue
        summary = parse_json((folder / "summary.json").read_text(encoding="utf-8"))
        summaries[name] = {**summary, "groups": {m: g for m, g in summary["groups"].items() if m == model}}
        for part, texts in lines.items():
            rows = (row for _, row in parse_numbered_json_lines((folder / part).read_text(encoding="utf-8")))
            mine = [{"metric": name, **row} for row in rows if row["model_id"] == model]
            texts += [json.dumps(row, ensure_ascii=False) + "\n" for row in mine]
    if not summaries:
        return {}
    files = {part: "".join(texts) for part, texts in lines.items()}
    return {"summary.json": json.dumps(summaries, indent=1, ensure_ascii=False) + "\n", **files}


def submission_problems(path: Path) -> list[str]:
    """Everything that is wrong with a submission, in sentences; none for a valid one."""
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    try:
        with zipfile.ZipFile(path) as archive:
            return _archive_problems(archive)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError):
        return [f"{path.name} is not a zip file that can be read"]


def _archive_problems(archive: zipfile.ZipFile) -> list[str]:
    allowed = {FILE, *(f"verification/{axis}/{part}" for axis in AXES for part in PARTS)}
    problems = []
    for member in archive.infolist():
        if member.file_size > LARGEST:
            return [f"{member.filename} is larger than {LARGEST >> 20} MiB"]
        if not member.is_dir() and member.filename not in allowed:
            problems.append(f"{member.filename} is not allowed; allowed are {FILE} and verification/<axis>/<file>")
    names = set(archive.namelist())
    if FILE not in names:
        return [*problems, f"there is no {FILE} at the root of the zip file"]
    problems += _content_problems(parse_json_or_none(archive.read(FILE)))
    for name in sorted(names & allowed - {FILE}):
        whole = name.endswith(".json")
        texts = [archive.read(name)] if whole else archive.read(name).splitlines()
        bad = [n for n, text in enumerate(texts, 1) if text.strip() and not isinstance(parse_json_or_none(text), dict)]
        if bad:
            problems.append(f"{name}: {'it' if whole else f'line {bad[0]}'} is not a JSON object")
    return problems


def _content_problems(content: object) -> list[str]:
    if not isinstance(content, dict):
        return [f"{FILE} is not a JSON object"]
    problems = [f"{FILE} has no {name}" for name in REQUIRED if name not in content]
    problems += [f"{FILE} has an unknown field {name!r}" for name in content if name not in (*REQUIRED, *OPTIONAL)]
    for name in ("model_name", "model_link"):
        if name in content and not (isinstance(content[name], str) and content[name].strip()):
            problems.append(f"{name} is {content[name]!r}; expected text")
    link = content.get("model_link")
    if isinstance(link, str) and link.strip() and not re.match("(?i)https?://[^/]", link):
        problems.append(f"model_link is {link!r}; expected an address that begins with http:// or https://")
    if "model_type" in content and content["model_type"] not in TYPES.values():
        problems.append(f"model_type is {content['model_type']!r}; expected {' or '.join(TYPES.values())}")
    for name in ("total_m_score", *OPTIONAL):
        value = content.get(name)
        number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100
        if name in content and not number:
            problems.append(f"{name} is {value!r}; expected a number from 0 to 100")
    return problems
