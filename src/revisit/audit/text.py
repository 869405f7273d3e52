"""The audit, a sweep and a horizon as plain text, for a console of 80 to 160 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from revisit.audit.cards import two_decimals_or_dash
from revisit.audit.schema import Content
from revisit.core.grouping import group_items
from revisit.core.text import count_and_noun, join_names, read_package_yaml, truncate_text
from revisit.results import Cell
from revisit.results.display import cell_text, direction_arrow

WIDTH = 34  # of the column that names the metric
CELL = 5
WORDS = 16  # characters shown of a value that is words
PROBLEMS: Mapping[str, str] = read_package_yaml("revisit.audit", "words.yaml")["problems"]


def audit_text(audit: Content) -> str:
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
        clips = [score["clips"] for score in audit["diagnosis"]["kinds"].values() if score["clips"]]
        lines.append(f"Diagnosis: macro F1 {mean:.2f} over {count_and_noun(len(clips), 'kind')}, {sum(clips)} clips")
    lines += ["", *failing_metric_lines(audit)]
    lines += [f"Not asked: {', '.join(ids)} ({reason})" for reason, ids in unasked_metrics_by_reason(audit).items()]
    if grid["failed"]:
        lines.append(f"{grid['failed']} answers failed and are missing here; the same command tries them again")
    return "\n".join(lines)


def problems_by_meaning(audit: Content) -> dict[str, list[Content]]:
    """What is wrong -> the metrics that do it, with a sentence on each."""
    problems = group_items(audit["failing"], lambda entry: entry["problem"])
    return {meaning: problems[problem] for problem, meaning in PROBLEMS.items() if problem in problems}


def metrics_fooled_by_frozen_camera(audit: Content) -> list[str]:
    """The metrics of memory that a frozen camera fools."""
    return [entry["metric"] for entry in audit["failing"] if entry["problem"] == "frozen camera scored as memory"]


def unasked_metrics_by_reason(audit: Content) -> dict[str, list[str]]:
    """Reason -> everything that was not asked for it."""
    return group_items(audit["not_asked"], lambda metric_id: audit["not_asked"][metric_id])


def auc_cell_text(cell: Content) -> str:
    """Six characters: the AUC, in brackets where it is claimed, starred where it follows the strength."""
    if cell["response"] in ("unscored", "no clips"):
        inside = "."
    else:
        inside = f"{100 * (cell['auc'] or 0.0):.0f}{'*' if cell['response'] == 'responds' else ''}"
    return f"{f'[{inside}]' if cell['claimed'] else inside + ' ':>{CELL + 1}}"


def responding_metric_lines(audit: Content) -> list[str]:
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


def failing_metric_lines(audit: Content) -> list[str]:
    """The metrics that do not do what they claim, by what is wrong."""
    lines = []
    for meaning, entries in problems_by_meaning(audit).items():
        lines.append(f"{meaning} ({len({entry['metric'] for entry in entries})} metrics):")
        lines += [f"  {entry['metric']}: {entry['sentence']}" for entry in entries]
    memory = [metric_id for metric_id, metric in audit["metrics"].items() if metric["memory"]]
    if memory and "frozen_camera" in audit["kinds"]:
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
    heads = ["", *(f"{truncate_text(str(row['value']), WORDS)}{' *' if row['default'] else ''}" for row in rows)]
    lines = [f"{sweep['parameter']} (default {sweep['default']}), suite {sweep['suite']}, {sweep['cases']} clips"]
    for metric_id, metric in sweep["metrics"].items():
        cells = [row["metrics"][metric_id] for row in rows]
        arrow = direction_arrow(metric["higher_is_better"])
        lines += ["", f"{metric['title']} ({metric_id}) {arrow}: mean (scored/all)"]
        table = [[model, *(_mean_text(cell["models"][model]) for cell in cells)] for model in sweep["models"]]
        for name in ("models", "clips"):
            table.append([f"tau, {name}", *(two_decimals_or_dash(cell[f"tau_{name}"]) for cell in cells)])
        lines += _aligned_lines([heads, *table], indent="  ")
    return "\n".join([*lines, "", f"  * default. {sweep['read']}."])


def steadiness_table(steadiness: Content) -> str:
    """Verdicts down: how often each flipped, its interval, how often it could not be told; then the flips."""
    table = [["verdict", "clips", "disturbed", "flips", "rate", "95 % interval", "cannot tell"]]
    flips = []
    for name, row in steadiness["verdicts"].items():
        low, high = row["interval"] or (0.0, 1.0)
        counts = [row["clips"], row["tried"], len(row["flips"]), f"{row['rate']:.1%}", f"{low:.1%} to {high:.1%}"]
        table.append([name, *map(str, counts), f"{row['untold']}/{row['asked']}"])
        for flip in row["flips"]:
            turned = "; ".join(
                f"{topic + ': ' if topic else ''}{before} → {after}"
                for topic, (before, after) in flip["from_to"].items()
            )
            flips.append(f"  {name}, {flip['case']}, {flip['disturbed']}: {turned}")
    return "\n".join([*_aligned_lines(table), *flips, *_unread_and_failed_lines(steadiness)])


def _unread_and_failed_lines(content: Content) -> list[str]:
    """What was not counted, and why, a line for each clip."""
    lines = [f"  not read: {id}: {reason}" for id, reason in content["unread"].items()]
    return lines + [f"  failed, and not counted: {id}: {reason}" for id, reason in content["failed"].items()]


def real_table(content: Content) -> str:
    """The target gate against people, by kind, and whatever else was labelled."""
    target = content["target"]
    table = [["kind", "clips", "right", "wrong", "undecided", "wrong, 95 %", "scenes wrong"]]
    rows_by_kind = {kind or "(none)": row for kind, row in target["kinds"].items()}
    rows_by_kind |= {f"in {source}": row for source, row in target["sources"].items()}
    rows_by_kind |= {"target really hides": target["hides"], "all": target["all"]}
    for name, row in {**rows_by_kind, "always 'never hidden'": target["always never hidden"]}.items():
        clips, scenes = row["clips"], row["scenes"]
        low, high = clips["wrong_interval"] or (0.0, 1.0)
        counts = [str(clips[count]) for count in ("n", "right", "wrong", "undecided")]
        table.append([name, *counts, f"{low:.0%} to {high:.0%}", f"{scenes['wrong']} of {scenes['n']}"])
    lines = [f"target gate with the set {content['set']}, against {target['all']['clips']['n']} clear labels"]
    lines += _aligned_lines(table)
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
    return "\n".join([*lines, *_unread_and_failed_lines(content)])


def horizon_table(horizon: Content) -> str:
    """Models down, gaps across, for each metric."""
    lines = [
        f"Score over the hidden interval, {len(horizon['scenes'])} scenes; "
        f"the model 'fades' forgets in {horizon['forgotten_after']:g} s"
    ]
    for metric_id, curve in horizon["curves"].items():
        gaps = next(iter(curve["models"].values()))["points"]
        table = [["model", *(f"{point['gap']:.1f} s" for point in gaps), "tau in gap"]]
        for model, facts in curve["models"].items():
            table.append([model, *map(_mean_text, facts["points"]), two_decimals_or_dash(facts["tau"])])
        lines += ["", f"{curve['title']} ({metric_id})", *_aligned_lines(table, indent="  ")]
    return "\n".join([*lines, *_unread_and_failed_lines(horizon)])


def _aligned_lines(rows: Sequence[Sequence[str]], indent: str = "") -> list[str]:
    """The rows of a table; columns as wide as they need to be, all but the first aligned to the right."""
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    return [
        f"{indent}{name:<{first}}" + "".join(f"  {cell:>{width}}" for cell, width in zip(cells, others, strict=True))
        for name, *cells in rows
    ]


def _mean_text(cell: Content) -> str:
    return cell_text(Cell.from_json(cell), with_interval=False)
