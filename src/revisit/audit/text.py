"""The audit, a sweep and a horizon as plain text, for a console of 80 to 160 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from revisit.audit.cards import two_decimals_or_dash
from revisit.audit.schema import AuditContent, CellJson, Content, KindAudit
from revisit.core.grouping import group_items
from revisit.core.text import join_names, read_package_yaml
from revisit.results import Cell
from revisit.results.display import cell_text, direction_arrow

WIDTH = 34  # of the column that names the metric
CELL = 5
PROBLEMS: Mapping[str, str] = read_package_yaml("revisit.audit", "words.yaml")["problems"]


def audit_text(audit: AuditContent) -> str:
    """Metrics down, failures across, the AUC of each; then the diagonal and the metrics that fail."""
    grid, kinds, metrics = audit["grid"], list(audit["kinds"]), audit["metrics"]
    short = abbreviate_kinds(kinds)
    lines = [
        f"AUC x 100 against perfect memory at full strength: 100 always noticed, 50 not noticed, 0 rewarded; "
        f"{len(grid['seeds'])} scenes, set {grid['set']}",
        "[ ] claimed by the metric's card   * follows the strength (tau >= 0.8)   . under half of the clips scored",
        "",
        " " * WIDTH + "".join(f"{short[kind]:>{CELL + 1}}" for kind in kinds),
    ]
    for metric_id, metric in metrics.items():
        name = f"{metric_id}{' (memory)' if metric['memory'] else ''}"[: WIDTH - 1]
        lines.append(f"{name:<{WIDTH}}" + "".join(auc_cell_text(metric["kinds"][kind]) for kind in kinds))
    lines += ["", "Failures: " + ", ".join(f"{short[kind]} {audit['kinds'][kind]['title']}" for kind in kinds), ""]
    lines += responding_metric_lines(audit)
    if "diagnosis" in audit and (mean := audit["diagnosis"]["macro_f1"]) is not None:
        clips = sum(score["clips"] for score in audit["diagnosis"]["kinds"].values())
        lines.append(f"Diagnosis: macro F1 {mean:.2f} over {len(audit['diagnosis']['kinds'])} kinds, {clips} clips")
    lines += ["", *failing_metric_lines(audit)]
    lines += [f"Not asked: {', '.join(ids)} ({reason})" for reason, ids in unasked_metrics_by_reason(audit).items()]
    if grid["failed"]:
        lines.append(f"{grid['failed']} answers failed and are missing here; the same command tries them again")
    return "\n".join(lines)


def problems_by_meaning(audit: AuditContent) -> dict[str, list[Content]]:
    """What is wrong -> the metrics that do it, with a sentence on each."""
    problems = group_items(audit["failing"], lambda entry: entry["problem"])
    return {meaning: problems[problem] for problem, meaning in PROBLEMS.items() if problem in problems}


def metrics_fooled_by_frozen_camera(audit: AuditContent) -> list[str]:
    """The metrics of memory that a frozen camera fools."""
    return [entry["metric"] for entry in audit["failing"] if entry["problem"] == "frozen camera scored as memory"]


def unasked_metrics_by_reason(audit: AuditContent) -> dict[str, list[str]]:
    """Reason -> everything that was not asked for it."""
    return group_items(audit["not_asked"], lambda metric_id: audit["not_asked"][metric_id])


def auc_cell_text(cell: KindAudit) -> str:
    """Six characters: the AUC, in brackets where it is claimed, starred where it follows the strength."""
    if cell["response"] in ("unscored", "no clips"):
        inside = "."
    else:
        inside = f"{100 * (cell['auc'] or 0.0):.0f}{'*' if cell['response'] == 'responds' else ''}"
    return f"{f'[{inside}]' if cell['claimed'] else inside + ' ':>{CELL + 1}}"


def responding_metric_lines(audit: AuditContent) -> list[str]:
    """Which metrics respond to each failure in the order of its strength."""
    rows = audit["diagonal"]
    passed = sum(row["passes"] for row in rows.values())
    lines = [f"{passed} of {len(rows)} failures have a metric with AUC >= 0.95 that follows the strength (tau >= 0.8):"]
    for kind, row in rows.items():
        metric_names = join_names(row["metrics"], 5)
        best = row["best"]
        nearest = "none: nothing was scored"
        if best:
            tau = two_decimals_or_dash(best["tau"])
            nearest = f"none; nearest is {best['metric']}, AUC {best['auc']:.2f}, tau {tau}"
        lines.append(f"  {audit['kinds'][kind]['title']:<28} {metric_names or nearest}")
    return lines


def failing_metric_lines(audit: AuditContent) -> list[str]:
    """The metrics that do not do what they claim, by what is wrong."""
    lines = []
    for meaning, entries in problems_by_meaning(audit).items():
        lines.append(f"{meaning} ({len({entry['metric'] for entry in entries})} metrics):")
        lines += [f"  {entry['metric']}: {entry['sentence']}" for entry in entries]
    memory = [metric_id for metric_id, metric in audit["metrics"].items() if metric["memory"]]
    if "frozen_camera" in audit["kinds"]:
        count = len(metrics_fooled_by_frozen_camera(audit))
        verdict = f"{count} of them fail" if count else "none scores a frozen camera as good memory"
        lines.append(f"Memory metrics ({len(memory)}): {', '.join(memory)}; {verdict}.")
    return lines


def abbreviate_kinds(kinds: Sequence[str]) -> dict[str, str]:
    """Five letters for each failure: of its only word, or two of the first and two of the last."""
    short_names: dict[str, str] = {}
    for kind in kinds:
        words = kind.split("_")
        short = words[0][:CELL] if len(words) == 1 else f"{words[0][:2]}.{words[-1][:2]}"
        tries = [short, *(f"{short[: CELL - 1]}{number}" for number in range(2, 10)), kind]
        short_names[kind] = next(word for word in tries if word not in short_names.values())
    return short_names


def sweep_table(sweep: Content) -> str:
    """Models down, values across, for each metric that depends on the parameter; then the taus of each value."""
    rows = sweep["rows"]
    heads = [_truncate(f"{row['value']}{' *' if row['default'] else ''}", 17) for row in rows]
    width = max([12, *map(len, sweep["models"])])
    lines = [f"{sweep['parameter']} (default {sweep['default']}), suite {sweep['suite']}, {sweep['cases']} clips"]
    for metric_id, metric in sweep["metrics"].items():
        cells = [row["metrics"][metric_id] for row in rows]
        lines += [
            "",
            f"{metric['title']} ({metric_id}) {direction_arrow(metric['higher_is_better'])}: mean (scored/all)",
        ]
        lines.append(f"  {'':<{width}}" + "".join(f"{head:>18}" for head in heads))
        for model in sweep["models"]:
            means = "".join(f"{_mean_text(cell['models'][model]):>18}" for cell in cells)
            lines.append(f"  {_truncate(model, width):<{width}}{means}")
        stability = {"models": [cell["tau_models"] for cell in cells], "clips": [cell["tau_clips"] for cell in cells]}
        for name, taus in stability.items():
            lines.append(f"  {f'tau, {name}':<{width}}" + "".join(f"{two_decimals_or_dash(tau):>18}" for tau in taus))
    return "\n".join([*lines, "", f"  * default. {sweep['read']}."])


def steadiness_table(steadiness: Content) -> str:
    """Verdicts down: how often each flipped, its interval, how often it could not be told; then the flips."""
    lines = [
        f"{'verdict':<16}{'clips':>7}{'disturbed':>11}{'flips':>7}{'rate':>8}{'95 % interval':>18}{'cannot tell':>13}"
    ]
    for name, row in steadiness["verdicts"].items():
        low, high = row["interval"] or (0.0, 1.0)
        undecided = f"{row['untold']}/{row['asked']}"
        lines.append(
            f"{name:<16}{row['clips']:>7}{row['tried']:>11}{len(row['flips']):>7}{row['rate']:>8.1%}"
            f"{f'{low:.1%} to {high:.1%}':>18}{undecided:>13}"
        )
    for name, row in steadiness["verdicts"].items():
        for flip in row["flips"]:
            turned = "; ".join(
                f"{topic + ': ' if topic else ''}{before} → {after}"
                for topic, (before, after) in flip["from_to"].items()
            )
            lines.append(f"  {name}, {flip['case']}, {flip['disturbed']}: {turned}")
    lines += [f"  not read: {id}: {reason}" for id, reason in steadiness["unread"].items()]
    lines += [f"  failed, and not counted: {id}: {reason}" for id, reason in steadiness["failed"].items()]
    return "\n".join(lines)


def real_table(content: Content) -> str:
    """The target gate against people, by kind, and whatever else was labelled."""
    target = content["target"]
    lines = [
        f"target gate with the set {content['set']}, against {target['all']['clips']['n']} clear labels",
        f"{'kind':<22}{'clips':>6}{'right':>7}{'wrong':>7}{'undecided':>11}{'wrong, 95 %':>18}{'scenes wrong':>15}",
    ]
    rows_by_kind = {kind or "(none)": row for kind, row in target["kinds"].items()}
    rows_by_kind |= {f"in {source}": row for source, row in target["sources"].items()}
    rows_by_kind |= {"target really hides": target["hides"], "all": target["all"]}
    for name, row in {**rows_by_kind, "always 'never hidden'": target["always never hidden"]}.items():
        clips, scenes = row["clips"], row["scenes"]
        low, high = clips["wrong_interval"] or (0.0, 1.0)
        between = f"{low:.0%} to {high:.0%}"
        lines.append(
            f"{_truncate(name, 21):<22}{clips['n']:>6}{clips['right']:>7}{clips['wrong']:>7}{clips['undecided']:>11}"
            f"{between:>18}{scenes['wrong']:>9} of {scenes['n']}"
        )
    for label, counts in target["confusion"].items():
        answers = ", ".join(f"{count} {answer}" for answer, count in sorted(counts.items(), key=lambda item: -item[1]))
        lines.append(f"people say {label!r} ({sum(counts.values())}): {answers or 'no clip'}")
    for one in content["clips"]:
        if one["outcome"] in ("wrong", "undecided"):
            lines.append(f"  {one['outcome']}: {one['clip']} is {one['label']!r}, said {one['said']!r} ({one['why']})")
    for level in target["calibration"]:
        low, high = level["interval"] or (0.0, 1.0)
        lines.append(
            f"confidence {level['confidence']:.2f}: {level['right']} of {level['n']} right ({low:.0%} to {high:.0%})"
        )
    for name, errors in content["frames"].items():
        if errors["n"]:
            lines.append(f"frame {name}: off by {errors['median_seconds']:.2f} s in the median of {errors['n']}")
    if content["view"]["clips"]["n"]:
        view = content["view"]["clips"]
        lines.append(f"view gate: {view['right']} right, {view['wrong']} wrong, {view['undecided']} undecided")
    for outcome, count in content["target_reappearance"].items():
        lines.append(f"target_reappearance, {outcome}: {count}")
    for kind, counts in content["diagnosis"].items():
        lines.append(f"diagnosis, {kind}: {', '.join(f'{n} {outcome}' for outcome, n in counts.items())}")
    for name, verdict in content.get("flips", {}).items():
        lines.append(f"{name}: {len(verdict['flips'])} of {verdict['tried']} flipped under changes that nobody sees")
    return "\n".join(lines)


def horizon_table(horizon: Content) -> str:
    """Models down, gaps across, for each metric."""
    lines = [
        f"Score over the hidden interval, {len(horizon['scenes'])} scenes; "
        f"the model 'fades' forgets in {horizon['forgotten_after']:g} s"
    ]
    for metric_id, curve in horizon["curves"].items():
        gaps = next(iter(curve["models"].values()))["points"]
        lines += ["", f"{curve['title']} ({metric_id})"]
        lines.append(f"  {'model':<16}" + "".join(f"{point['gap']:>13.1f} s" for point in gaps) + f"{'tau in gap':>14}")
        for model, facts in curve["models"].items():
            text = f"  {_truncate(model, 15):<16}" + "".join(f"{_mean_text(point):>15}" for point in facts["points"])
            lines.append(text + f"{two_decimals_or_dash(facts['tau']):>14}")
    return "\n".join(lines)


def _mean_text(cell: CellJson) -> str:
    return cell_text(Cell.from_json(cell), interval=False)


def _truncate(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
