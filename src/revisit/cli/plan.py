"""`revisit plan`: what an evaluation would do, without decoding anything."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path

import typer

from revisit.cli import console
from revisit.cli.options import ALIGN, JUDGE, LIMIT, METRIC, OPTION, PARAM, PROTOCOL, ROOT, SET, SOURCE, SUITE, TRUTH


def plan(
    source: Path = SOURCE,
    suite: str = SUITE,
    set: str = SET,
    protocol: str = PROTOCOL,
    metric: list[str] = METRIC,
    limit: int = LIMIT,
    align: str = ALIGN,
    root: list[Path] = ROOT,
    option: list[str] = OPTION,
    judge: str = JUDGE,
    param: list[str] = PARAM,
    truth: bool = TRUTH,
    json: bool = typer.Option(False, "--json", help="Print the plan as JSON."),
) -> None:
    """Show what would be decoded, observed and scored, and what is already done."""
    from revisit.engine.availability import caption
    from revisit.engine.cache import EvidenceCache, cache_root
    from revisit.engine.costs import known_costs
    from revisit.engine.judge_forecast import forecast
    from revisit.engine.request import Request

    request = Request.of(source, suite, set, protocol, metric, limit, align, root, option, judge, param, truth)
    chosen = request.chosen_judge()
    made = request.plan(judge=chosen.facts if chosen else None)
    cache = EvidenceCache(cache_root())
    asking = forecast(made, cache, chosen) if chosen else None
    missing = [key for key in made.tasks if key not in cache]
    jobs = made.jobs(missing)
    if json:
        asked = {"judge": asdict(asking)} if asking else {}
        console.data({**made.as_json(), "evidence": len(made.tasks), "missing": len(missing), **asked})
        return
    models = Counter(case.model for case in made.cases)
    console.table(["model", "cases"], [[model, str(n)] for model, n in sorted(models.items())])
    needed = Counter(task.observer for _, _, task in made.tasks.values())
    todo = Counter(made.tasks[key][2].observer for key in missing)
    rows = [[id, str(count), str(count - todo[id])] for id, count in sorted(needed.items())]
    console.table(["observer", "clips", "already observed"], rows)
    console.message(
        f"suite {made.suite.id}, protocol {made.protocol}, set {made.observers.id}, observers "
        f"{caption(made.as_json())}: {len(made.cases)} cases x "
        f"{len(made.metrics)} metrics; {sum(len(job.clips) for job in jobs)} clips to decode, once each"
    )
    if missing_here := made.availability.sentence:
        console.message(missing_here)
    if jobs:
        costs = known_costs(cache)
        wanted = [(clip.clip, task) for job in jobs for clip in job.clips for task in clip.observers]
        unknown = len({task.observer for _, task in wanted} - costs.per_frame.keys())
        guess = f"; {unknown} observers never ran here, and are guessed" if unknown else ""
        console.message(f"about {_duration(costs.seconds(wanted))} of one processor, by earlier runs here{guess}")
    if asking and chosen:
        console.message(f"judge {chosen.judge.facts.get('model')}: {asking.said()}")
        if asking.exceeds(chosen.limit):
            console.message("that is more than the judge's budget: the run will stop there, and can be resumed")
    reasons = Counter(reason for wanted in made.wanted.values() for reason in wanted.absent.values())
    for reason, count in reasons.most_common():
        console.message(f"{count} x {reason}")
    for remark in made.remarks:
        console.message(f"note: {remark}")
    for id, why in made.unreadable.items():
        console.message(f"unreadable: {id}: {why}")
    for entry in made.rejected:
        console.message(f"rejected: {entry.id}: {entry.reason}")


def _duration(seconds: float) -> str:
    """In words, as far as a guess goes."""
    for size, name in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(1, seconds):.0f} s"
