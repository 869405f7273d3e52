"""`revisit plan`: what an evaluation would do, without decoding anything."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path

from revisit.cli import console, options


def plan(
    source: Path = options.SOURCE,
    suite: str = options.SUITE,
    observer_set: str = options.SET,
    protocol: str = options.PROTOCOL,
    metric: list[str] = options.METRIC,
    limit: int = options.LIMIT,
    align: str = options.ALIGN,
    root: list[Path] = options.ROOT,
    option: list[str] = options.OPTION,
    judge: str = options.JUDGE,
    param: list[str] = options.PARAM,
    truth: bool = options.TRUTH,
    json: bool = options.JSON,
) -> None:
    """Show what an evaluation would do, and what is already done."""
    from revisit.engine.availability import caption
    from revisit.engine.cache import EvidenceCache, cache_root
    from revisit.engine.costs import load_costs
    from revisit.engine.judge_forecast import forecast
    from revisit.engine.request import Request

    request = Request.of(source, suite, observer_set, protocol, metric, limit, align, root, option, judge, param, truth)
    selection = request.chosen_judge()
    work = request.plan(judge=selection.facts if selection else None)
    cache = EvidenceCache(cache_root())
    asking = forecast(work, cache, selection) if selection else None
    missing = [key for key in work.tasks if key not in cache]
    jobs = work.jobs(missing)
    if json:
        forecast_rows = {"judge": asdict(asking)} if asking else {}
        console.data({**work.as_json(), "evidence": len(work.tasks), "missing": len(missing), **forecast_rows})
        return
    models = Counter(case.model for case in work.cases)
    console.table(["model", "cases"], [[model, str(n)] for model, n in sorted(models.items())])
    needed = Counter(task.observer for _, _, task in work.tasks.values())
    todo = Counter(work.tasks[key][2].observer for key in missing)
    rows = [[name, str(count), str(count - todo[name])] for name, count in sorted(needed.items())]
    console.table(["observer", "clips", "already observed"], rows)
    console.message(
        f"suite {work.suite.id}, protocol {work.protocol}, set {work.observers.id}, observers "
        f"{caption(work.as_json())}: {len(work.cases)} cases x "
        f"{len(work.metrics)} metrics; {sum(len(job.clips) for job in jobs)} clips to decode, once each"
    )
    if missing_here := work.availability.sentence:
        console.message(missing_here)
    if jobs:
        costs = load_costs(cache)
        tasks = [(clip.clip, task) for job in jobs for clip in job.clips for task in clip.observers]
        unknown = len({task.observer for _, task in tasks} - costs.per_frame.keys())
        guess = f"; {unknown} observers never ran here, and are guessed" if unknown else ""
        console.message(f"about {_duration(costs.seconds(tasks))} of one processor, by earlier runs here{guess}")
    if asking and selection:
        console.message(f"judge {selection.judge.facts.get('model')}: {asking.said()}")
        if asking.exceeds(selection.limit):
            console.message("that is more than the judge's budget: the run will stop there, and can be resumed")
    reasons = Counter(reason for tasks in work.wanted.values() for reason in tasks.absent.values())
    for reason, count in reasons.most_common():
        console.message(f"{count} x {reason}")
    for remark in work.remarks:
        console.message(f"note: {remark}")
    for name, why in work.unreadable.items():
        console.message(f"unreadable: {name}: {why}")
    for entry in work.rejected:
        console.message(f"rejected: {entry.id}: {entry.reason}")


def _duration(seconds: float) -> str:
    """In words, as far as a guess goes."""
    for size, name in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(1, seconds):.0f} s"
