"""What two runs must have in common before their numbers may be subtracted, and how they differ where they have not."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from revisit.core import METRICS, SUITES, Case, UsageError, evidence_id
from revisit.core.text import alternatives
from revisit.engine.dependencies import observed_kinds
from revisit.results.ceilings import held_metrics
from revisit.results.compare import Contender
from revisit.results.file_types import ObserverEntry, PlanFile, ProtocolEntry, RunFile
from revisit.results.leaderboards import MAKERS
from revisit.results.question_ranking import questions_of
from revisit.results.run import Run
from revisit.results.score_names import held_id, measured_id
from revisit.runs.group_by import grouping


@dataclass(frozen=True)
class Side:
    """A model of a run, with what the run says of its protocol."""

    entry: Contender
    run: Run
    facts: RunFile
    plan: PlanFile
    model: str


def read_sides(words: Sequence[str]) -> list[Side]:
    """What to compare: runs (all their models), RUN:MODEL, or a run followed by names of its models."""
    runs: dict[str, Run] = {}
    wanted: list[tuple[str, str | None]] = []
    for word in words:
        place, _, model = word.rpartition(":")
        if (Path(word) / "run.json").is_file():
            runs[word] = Run(Path(word))
            wanted.append((word, None))
        elif place and (Path(place) / "run.json").is_file():
            runs[place] = Run(Path(place))
            wanted.append((place, model))
        else:
            having = [name for name, run in runs.items() if word in run.results.models]
            if not having:
                raise UsageError(
                    f"{word!r} is neither a run directory nor a model of the runs before it; "
                    "give runs, RUN:MODEL, or a run and names of its models"
                )
            wanted = [(name, named) for name, named in wanted if name != having[-1] or named is not None]
            wanted.append((having[-1], word))
    read = {name: (run.facts, run.plan, run.results) for name, run in runs.items()}
    chosen = [
        (name, model) for name, named in wanted for model in ([named] if named is not None else read[name][2].models)
    ]
    labels = _labels(chosen)
    made = []
    for (name, model), label in zip(chosen, labels, strict=True):
        facts, plan, results = read[name]
        if model not in results.models:
            raise UsageError(f"{name} has no model {model!r}; {alternatives(model, results.models)}")
        made.append(Side(Contender(label, results.where(model=model)), runs[name], facts, plan, model))
    return made


def _labels(chosen: Sequence[tuple[str, str]]) -> list[str]:
    """The shortest names that tell the sides apart: models, runs, or both."""
    models = [model for _, model in chosen]
    runs = [Path(name).resolve().name for name, _ in chosen]
    if len(set(models)) == len(models):
        return models
    return runs if len(set(runs)) == len(runs) else [f"{run}:{model}" for run, model in zip(runs, models, strict=True)]


def match_sides(found: Sequence[Side]) -> list[tuple[Side, list[Side]]]:
    """Who is compared with whom: all with the first; of runs with the same several models, model by model."""
    by_run: dict[Path, list[Side]] = {}
    for side in found:
        by_run.setdefault(side.run.path, []).append(side)
    names = [[side.model for side in mine] for mine in by_run.values()]
    if len(names) > 1 and len(names[0]) > 1 and all(one == names[0] for one in names):
        groups = list(by_run.values())
        return [(groups[0][k], [mine[k] for mine in groups[1:]]) for k in range(len(names[0]))]
    return [(found[0], list(found[1:]))]


def asked_metrics(facts: RunFile) -> list[str]:
    """The metrics that answer the questions of a run's suite, of those that the run asked."""
    card = SUITES[facts["suite"]].card if facts["suite"] in SUITES else {}
    asked = [id for question in questions_of(card) for id in question.metrics]
    return [id for id in dict.fromkeys(asked) if id in facts["protocol"]["metrics"]]


def ranked_ids(found: Sequence[Side], metrics: Sequence[str]) -> list[str]:
    """The names of the scores by which metrics rank: held to the truth, where some run has other numbers there."""
    held = frozenset[str]().union(*(held_metrics(side.entry.results) for side in found))
    return [held_id(metric) if metric in held else metric for metric in metrics]


def refusals(one: Side, other: Side, metrics: Sequence[str]) -> dict[str, str]:
    """Metric -> why its two numbers must not be subtracted."""
    found = {}
    for id in metrics:
        if measured_id(id) not in METRICS:
            found[id] = "it is not installed here"
        elif why := differences(one, other, id):
            found[id] = why
    return found


def differences(one: Side, other: Side, metric: str) -> str:
    """In what the protocols of two runs differ for a metric; nothing where its numbers compare."""
    if one.run.path == other.run.path:
        return ""
    metric = measured_id(metric)
    if one.facts["suite"] != other.facts["suite"]:
        return f"the suites differ ({one.facts['suite']} and {other.facts['suite']})"
    mine, yours = (side.facts["protocol"]["metrics"].get(metric) for side in (one, other))
    if mine is None or yours is None:
        return "only one of the runs asked it"
    told = []
    if mine.partition(":")[2] != yours.partition(":")[2]:
        told = _differences(one.facts["protocol"], other.facts["protocol"], metric) or [
            "the versions of its code differ"
        ]
    makers = [_makers(side, metric) for side in (one, other)]
    if all(makers) and makers[0] != makers[1]:
        told.append(f"made by {' and '.join(makers[0])}, against {' and '.join(makers[1])}")
    if clip := _other_truth(one, other):
        told.append(f"the reference of {clip} is not the same file")
    return "; ".join(told)


def _differences(mine: ProtocolEntry, yours: ProtocolEntry, metric: str) -> list[str]:
    told = []
    kinds = {evidence_id(kind) for kind in observed_kinds(METRICS[metric])} if metric in METRICS else set()
    for kind in sorted(kinds):
        a, b = (side["observers"].get(kind) for side in (mine, yours))
        if a != b:
            told.append(f"{kind} by {_maker_text(a)}, against {_maker_text(b)}")
    for name in ("name", "align", "judge"):
        if mine.get(name) != yours.get(name):
            told.append(f"{'protocol' if name == 'name' else name} {mine.get(name)}, against {yours.get(name)}")
    one, other = (side["parameters"].get(metric) for side in (mine, yours))
    if one != other:
        told.append(f"parameters {one or 'by default'}, against {other or 'by default'}")
    return told


def _maker_text(facts: ObserverEntry | None) -> str:
    if facts is None:
        return "nobody"
    changed = f" with {facts['params']}" if facts.get("params") else ""
    return f"{facts['observer']} (version {facts['version']}{changed})"


def _makers(side: Side, metric: str) -> list[str]:
    """Who made the evidence behind the scores, where a protocol leaves that to files."""
    records = side.entry.results.scores(metric)
    return sorted({str(record.facts[name]) for record in records for name in MAKERS if record.facts.get(name)})


def _other_truth(one: Side, other: Side) -> str:
    def digests(side: Side) -> dict[str, set[str]]:
        references: dict[str, set[str]] = {}  # a scene may have several clips, each with a reference of its own
        for case in side.plan["cases"]:
            if (reference := case.get("reference_digest")) and case["model"] == side.model:
                references.setdefault(case["sample"], set()).add(reference)
        return references

    mine, yours = digests(one), digests(other)
    return next((name for name in sorted(mine.keys() & yours.keys()) if mine[name] != yours[name]), "")


def groups(side: Side, expressions: Sequence[str]) -> dict[str, Callable[[Case], str]]:
    """Expression of --by -> the group of a clip."""
    return {text: grouping(side.entry.results, side.facts["suite"], text) for text in expressions}


_NUMBER = re.compile(r"\d+")


def step_of(side: Side) -> int | None:
    """The number of a checkpoint: the last one in the name of the model, else of the run."""
    for text in (side.model, side.run.path.resolve().name):
        if numbers := _NUMBER.findall(text):
            return int(numbers[-1])
    return None


def date_of(side: Side) -> str:
    """When a run was begun."""
    begun = [str(call["started"]) for call in side.facts.get("invocations", ()) if call.get("started")]
    return min(begun) if begun else ""
