"""Bundles: a run as one file that somebody else can check, scoring it again from its own evidence.

A bundle is a zip of bundle.json (what it is, and the digest of every other file), plan.json, run.json, records.jsonl
and evidence/<key>.npz. Paths of this machine stay here. Checking proves that the scores follow from the evidence by
this version's rules; that the evidence was made from the clips it names, nobody can prove without them.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from revisit.core import (
    GATES,
    METRICS,
    SUITES,
    Case,
    Gate,
    Metric,
    Reason,
    Rejected,
    RevisitError,
    UsageError,
    Verdict,
    digest,
)
from revisit.core.scores import Score, Unscored
from revisit.core.texts import parse_json, reading
from revisit.engine.cache import EvidenceCache
from revisit.engine.plan import Wanted
from revisit.engine.score import Bench, Failed, Sheet
from revisit.results import Results
from revisit.results.files import Line, case_from_json, from_line, to_answer
from revisit.results.memory import held_to_truth
from revisit.results.run import Run

SCHEMA = 1
LARGEST = 4 << 30  # bytes of all files together
MOST_FILES = 200_000
NAMES = re.compile(r"(plan|run)\.json|records\.jsonl|evidence/[0-9a-f]{8,64}\.npz")
CLOSE = 1e-6  # by how much a score may differ between machines, in units of its size
PRIVATE = ("host", "executable")


@dataclass(frozen=True)
class Bundle:
    """What a bundle says, read and checked for its form alone."""

    path: Path
    about: Mapping[str, Any]
    run: Mapping[str, Any]
    plan: Mapping[str, Any]
    lines: tuple[Line, ...]

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def results(self) -> Results:
        cases = {entry["id"]: case_from_json(entry) for entry in self.plan["cases"]}
        records = [from_line(to_answer(line), cases[line["case"]]) for line in self.lines if line["case"] in cases]
        known = self.plan["suite"] in SUITES
        return Results(
            list(cases.values()), records, [Rejected(**entry) for entry in self.plan["rejected"]],
            asks=SUITES[self.plan["suite"]].asks if known else None, name=self.name,
        )  # fmt: skip


@dataclass(frozen=True)
class Checked:
    """What came of scoring a bundle again."""

    scores: int  # that were made again and agree
    problems: tuple[str, ...] = ()
    unchecked: Mapping[str, int] = field(default_factory=dict)  # why -> answers that could not be made again here


def fingerprint(plan: Mapping[str, Any]) -> str:
    """One digest for a dataset: the samples, and the content of what each is compared with."""
    return digest(sorted({(case["sample"], case.get("reference_digest") or "") for case in plan["cases"]}), 12)


def write_bundle(run: Run, out: Path) -> Path:
    """The bundle of a finished run."""
    facts, plan = dict(run.facts), run.plan
    cache = EvidenceCache(Path(facts["cache"]))
    keys = sorted({key for case in plan["cases"] for key in case["evidence"].values()})
    lost = [key for key in keys if not cache.sound(key)]
    if lost:
        raise UsageError(
            f"{len(lost)} of {len(keys)} pieces of evidence are no longer in the cache; run the same eval command again"
        )
    results = run.results
    lines = [_line(record) for record in (*results.records, *results.truth.records)]
    facts["environment"] = {name: value for name, value in facts["environment"].items() if name not in PRIVATE}
    facts["invocations"] = [{"started": call["started"]} for call in facts.get("invocations", ())]
    kept = {name: facts[name] for name in ("revisit", "suite", "set", "protocol", "environment", "invocations")}
    files = {
        "plan.json": _text({**plan, "cases": [_nameless(case) for case in plan["cases"]]}),
        "run.json": _text(kept),
        "records.jsonl": "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode(),
        **{f"evidence/{key}.npz": cache.path(key).read_bytes() for key in keys},
    }
    about = {
        "schema": SCHEMA, "suite": plan["suite"], "protocol": facts["protocol"]["name"], "set": facts["set"],
        "hash": facts["protocol"]["hash"], "dataset": fingerprint(plan), "revisit": facts["revisit"],
        "models": sorted({case.model for case in results.cases}), "clips": len(results.cases),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }  # fmt: skip
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in {"bundle.json": _text(about), **files}.items():
            archive.writestr(zipfile.ZipInfo(name), content)  # without dates: the same run gives the same bytes
    return out


def _line(record: Any) -> Line:
    from revisit.results.files import to_line

    return to_line(record.changed(units="", n_units=0, seconds=0.0))


def _nameless(case: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of plan.json with names of files in the place of paths, after the digests that tell them apart."""
    made = dict(case)
    for name, digest_of in (("clip", "digest"), ("reference", "reference_digest")):
        if made.get(name):
            known = str(made.get(digest_of) or "")[:12]
            made[name] = {**made[name], "path": f"{known}/{Path(made[name]['path']).name}", "frames": None}
    made["artifacts"] = {name: Path(path).name for name, path in made["artifacts"].items()}
    return made


def _text(content: Any) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True, allow_nan=False) + "\n").encode()


def read_bundle(path: Path) -> Bundle:
    """What a bundle says; its names, sizes and digests are checked, its evidence is not opened."""
    if not path.is_file():
        raise UsageError(f"{path}: no such bundle; `revisit bundle write RUN` makes one")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            names = [entry.filename for entry in entries]
            if len(entries) > MOST_FILES or sum(entry.file_size for entry in entries) > LARGEST:
                raise UsageError(f"{path.name}: larger than a bundle may be")
            if len(set(names)) < len(names) or "bundle.json" not in names:
                raise UsageError(f"{path.name}: not a bundle (no bundle.json, or a name twice)")
            about = parse_json(archive.read("bundle.json"))
            if not isinstance(about, dict) or about.get("schema") != SCHEMA:
                raise UsageError(f"{path.name}: its schema is not {SCHEMA}; a newer Revisit may read it")
            strange = [name for name in names if name != "bundle.json" and not NAMES.fullmatch(name)]
            if strange or set(about["files"]) != set(names) - {"bundle.json"}:
                raise UsageError(f"{path.name}: holds files that a bundle does not have, or lacks some")
            for name, known in about["files"].items():
                if _sha256(archive, name) != known:
                    raise UsageError(f"{path.name}: {name} is not what bundle.json says; it was changed or damaged")
            plan, run = (parse_json(archive.read(name)) for name in ("plan.json", "run.json"))
            lines = tuple(parse_json(line) for line in archive.read("records.jsonl").decode().split("\n") if line)
            for line in lines:
                to_answer(line)  # a damaged one is told here
            if about["dataset"] != fingerprint(plan):
                raise UsageError(f"{path.name}: its dataset is not the one that bundle.json names")
            return Bundle(path, about, run, plan, lines)
    except RevisitError:
        raise
    except Exception as error:  # a damaged zip file fails in many ways
        raise UsageError(f"{path.name}: cannot be read as a bundle ({type(error).__name__})") from None


def _sha256(archive: zipfile.ZipFile, name: str) -> str:
    made = hashlib.sha256()
    with archive.open(name) as file:
        while part := file.read(1 << 20):
            made.update(part)
    return made.hexdigest()


def check_bundle(path: Path) -> Checked:
    """Score a bundle again from its evidence, and compare every answer with the one it claims."""
    bundle = read_bundle(path)
    with reading(path, "a bundle of a run"):
        return _checked(bundle, path)


def _checked(bundle: Bundle, path: Path) -> Checked:
    problems: list[str] = []
    unchecked: dict[str, int] = {}
    scores = 0
    wanted = {
        case["id"]: Wanted(case["evidence"], {id: Reason(**why) for id, why in case["absent"].items()})
        for case in bundle.plan["cases"]
    }
    with TemporaryDirectory(prefix="revisit-") as folder, zipfile.ZipFile(path) as archive:
        cache = EvidenceCache(Path(folder))
        results = bundle.results
        for case in (*results.cases, *results.truths):
            claimed = [line for line in bundle.lines if line["case"] == case.id]
            for key in wanted[case.id].keys.values():
                if key not in cache:
                    target = cache.path(key)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(archive.read(f"evidence/{key}.npz"))
            bench = Bench(Sheet(case, wanted[case.id], bundle.run["protocol"]["parameters"]), cache)
            for line in claimed:
                why = _compared(bench, line)
                if why is None:
                    scores += 1
                elif why.startswith("?"):
                    unchecked[why[1:]] = unchecked.get(why[1:], 0) + 1
                else:
                    problems.append(f"{case.id}: {why}")
            for file in cache.files():
                file.unlink()
    return Checked(scores, tuple(problems), unchecked)


def _compared(bench: Bench, line: Line) -> str | None:
    """None where the answer comes out again; else a sentence, with a `?` before it where that cannot be told here."""
    is_gate = "gate" in line
    id = line["gate" if is_gate else "metric"]
    if id not in (GATES if is_gate else METRICS):
        return "?its metric is not installed here"
    known: Metric | Gate = GATES[id] if is_gate else METRICS[id]
    if known.version != line["version"]:
        return "?its metric has another version here"
    if line["status"] == "failed":
        return "?it failed when it was made"
    try:
        made = bench.verdict(GATES[id]) if is_gate else bench.score(METRICS[id])
    except (Failed, RevisitError) as error:
        return f"{id} cannot be made from the evidence ({error})"
    if isinstance(made, Unscored):
        return None if line["status"] == "unscored" else f"{id} is claimed as {line['status']}, and has no score"
    if isinstance(made, Verdict):
        same = line["status"] == made.state and line.get("label", "") == made.label
        return None if same else f"{id} is claimed as {line['status']}, and is {made.state}"
    assert isinstance(made, Score)
    if line["status"] != "scored":
        return f"{id} is claimed as {line['status']}, and scores {made.value:.6g}"
    if abs(made.value - line["score"]) > CLOSE * max(1.0, abs(made.value)):
        return f"{id} is claimed as {line['score']:.6g}, and scores {made.value:.6g}"
    return None


def merged(bundles: Sequence[Bundle]) -> list[list[Bundle]]:
    """Bundles whose numbers compare: one suite, one dataset, one hash of all metrics."""
    groups: dict[tuple[str, str, str], list[Bundle]] = {}
    for bundle in bundles:
        about = bundle.about
        groups.setdefault((about["suite"], about["dataset"], about["hash"]), []).append(bundle)
    return list(groups.values())


def together(group: Sequence[Bundle]) -> tuple[Results, dict[str, str]]:
    """The results of comparable bundles as one, and the bundle of each row; a name in two bundles gets the bundle's.

    Scores are those that count, held to the truth: a board is a contest.
    """
    names = [model for bundle in group for model in bundle.about["models"]]
    cases: list[Case] = []
    records = []
    rejected = []
    rows: dict[str, str] = {}
    for bundle in group:
        results = held_to_truth(bundle.results)
        label = {model: f"{model} ({bundle.name})" if names.count(model) > 1 else model for model in results.models}
        rows.update({label[model]: bundle.name for model in results.models})
        own = {case.id: replace(case, id=f"{bundle.name}/{case.id}", model=label[case.model]) for case in results.cases}
        cases += own.values()
        records += [record.changed(case=own[record.case.id]) for record in results.records]
        rejected += [replace(entry, model=label.get(entry.model, entry.model)) for entry in results.rejected]
    return Results(cases, records, rejected, asks=group[0].results.asks), rows
