"""Tables and figures of agreement and alignment, in the papers' layout; for the console, the report and people.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from revisit.core import METRICS
from revisit.labels.agree import Report
from revisit.labels.align import Alignment
from revisit.stats.agreement import Agreement

Table = dict[str, Any]
NONE = "–"


def agreement_tables(report: Report) -> list[Table]:
    """Agreement by dimension (as WRBench's table 15), and the raters."""
    columns = ["things", "raters' answers", "split", "alike", "AC1", "AC2", "Cohen κ", "Fleiss κ", "α", "α ordinal"]
    rows = [
        {
            "name": f"{row.task}: {row.dimension}",
            "cells": [
                str(row.rated_twice),
                str(row.ratings),
                str(row.split),
                share(row.alike),
                told(row.ac1),
                told(row.ac2),
                told(row.cohen),
                told(row.fleiss),
                told(row.alpha),
                told(row.alpha_ordinal),
            ],
        }
        for row in report.rows
    ]
    raters = [
        {
            "name": one.rater,
            "cells": [
                str(one.items),
                number(one.seconds, 0),
                share(one.agrees),
                number(one.kappa),
                NONE if one.gold_right is None else f"{share(one.gold_right)} of {one.gold}",
                share(one.left),
                share(one.cannot),
            ],
        }
        for one in report.raters
    ]
    return [
        {
            "title": "Agreement of raters",
            "note": "things that two or more rated; coefficients with 95 % intervals over scenes; split: full ties, "
            "which no majority decides; κ of more than two raters is the mean over their pairs",
            "columns": columns,
            "rows": rows,
        },
        {
            "title": "Raters",
            "note": "agreement with the majority of the others; gold questions answered right; share of preferences "
            "for the left side",
            "columns": ["items", "median s", "agrees", "κ", "gold", "left", "cannot judge"],
            "rows": raters,
        },
    ]


def heat_table(report: Report) -> list[Table]:
    """The share of equal answers by scene and dimension, as the heat map has it; none for one scene."""
    if len(report.heat) < 2:
        return []
    heat = _heat(report.heat)
    rows = [
        {"name": scene, "cells": [NONE if cell is None else share(cell[0]) for cell in cells]}
        for scene, cells in heat["rows"]
    ]
    note = "share of pairs of answers to one thing that are the same"
    return [{"title": "Raters alike, by scene", "note": note, "columns": heat["columns"], "rows": rows}]


def alignment_tables(found: Alignment) -> list[Table]:
    """Win ratios, the bridge, triggers, answers and strengths; those that there are."""
    made = []
    if found.bridges:
        made += [_correlations(found), _bridge(found)]
        made += [_ratios(found)] if any(bridge.win_ratios for bridge in found.bridges) else []
    if found.triggers:
        made.append(_triggers(found))
    if found.answers:
        made.append(_answers(found.answers))
    if found.strengths:
        made.append(_strengths(found))
    return made


def figures(report: Report | None, found: Alignment | None) -> dict[str, Any]:
    """Numbers of the figures: heat maps and win ratios."""
    made: dict[str, Any] = {"heat": [], "ratios": []}
    if report is not None and len(report.heat) > 1:
        made["heat"].append({"title": "Raters alike, by scene and dimension", **_heat(report.heat)})
    if found is not None:
        if found.answers:
            title = "People's majority and the bank's answer alike, by scene and dimension"
            made["heat"].append({"title": title, **_heat(found.answers["heat"])})
        for bridge in found.bridges:
            if bridge.win_ratios:
                people, metric = bridge.win_ratios["people"], bridge.win_ratios["metric"]
                points = [[model, people[model], metric[model]] for model in people]
                made["ratios"].append({"title": f"{bridge.dimension}: {title_of(bridge.metric)}", "points": points})
    return made


def _heat(cells: Mapping[str, Mapping[str, tuple[float, int]]]) -> dict[str, Any]:
    columns = list(dict.fromkeys(name for row in cells.values() for name in row))
    rows = [
        [scene, [list(row[name]) if name in row else None for name in columns]] for scene, row in sorted(cells.items())
    ]
    return {"columns": columns, "rows": rows}


def _correlations(found: Alignment) -> Table:
    rows = []
    for bridge in found.bridges:
        ratios = bridge.win_ratios or {}
        cells = [
            title_of(bridge.metric),
            within(ratios.get("rho"), ratios.get("rho_interval")),
            within(ratios.get("tau"), ratios.get("tau_interval")),
            str(len(ratios.get("people", ()))),
            str(bridge.bridged),
        ]
        rows.append({"name": bridge.dimension, "cells": cells})
    return {
        "title": "Metric and people: win ratios of models",
        "note": "as MBench's table 3: majority of raters, full ties left out, a tie counts half; ρ and τ over models, "
        "with the middle 95 % over resampled scenes",
        "columns": ["metric", "ρ", "τ", "models", "pairs"],
        "rows": rows,
    }


def _bridge(found: Alignment) -> Table:
    rows = []
    for bridge in found.bridges:
        held = bridge.holdout or {}
        judged = bridge.judgeable or {}
        reversals = f"{held['reversals']} of {held['preferred']}" if held else NONE
        cells = [
            title_of(bridge.metric),
            number(bridge.agreement),
            f"{bridge.bridged} of {bridge.pairs}",
            number(bridge.rho),
            number(bridge.holdout_rho),
            number(held.get("tau"), 3),
            number(held.get("kappa")),
            number(held.get("weighted_kappa")),
            "/".join(number(held.get(name)) for name in ("exact", "strict", "tie")) if held else NONE,
            reversals,
            "/".join(number(judged.get(name)) for name in ("judgeable", "not_judgeable", "balanced"))
            if judged
            else NONE,
        ]
        rows.append({"name": bridge.dimension, "cells": cells})
    return {
        "title": "Metric and people: pairs",
        "note": "as WRBench's tables 5 and 16: ρ of verdicts and differences over all pairs; tie region, decisions and "
        "reversals with the region fitted on half of the scenes and reported on the others; J, NJ, balanced: the gate "
        "against people",
        "columns": [
            "metric",
            "AC1",
            "bridge n",
            "ρ",
            "holdout ρ",
            "tie region",
            "decision κ",
            "weighted κ",
            "exact/strict/tie",
            "reversals",
            "J/NJ/bal.",
        ],
        "rows": rows,
    }


def _ratios(found: Alignment) -> Table:
    models = list(
        dict.fromkeys(model for bridge in found.bridges for model in (bridge.win_ratios or {}).get("people", {}))
    )
    rows = []
    for bridge in found.bridges:
        ratios = bridge.win_ratios or {"people": {}, "metric": {}}
        for who, name in (("people", "people"), ("metric", title_of(bridge.metric))):
            cells = [number(ratios[who].get(model)) for model in models]
            rows.append({"name": f"{bridge.dimension}: {name}", "cells": cells})
    note = (
        "share of comparisons won, a tie half; people's are over the pairs for which the metric below them has scores"
    )
    return {"title": "Win ratios", "note": note, "columns": models, "rows": rows}


def _triggers(found: Alignment) -> Table:
    keys = ("accuracy", "precision", "recall", "f1", "kappa")
    rows = [
        {"name": name, "cells": [str(one["n"]), *(number(one[key]) for key in keys)]}
        for name, one in found.triggers.items()
    ]
    gone = found.triggers.get("all", {}).get("undecided", 0)
    return {
        "title": f"Does it pose the test? {found.trigger_gate} and people",
        "note": "as MBench's table 6: the majority of raters is right"
        + (f"; {gone} clips that the gate could not decide are left out" if gone else ""),
        "columns": ["clips", "accuracy", "precision", "recall", "F1", "κ"],
        "rows": rows,
    }


def _answers(answers: Mapping[str, Any]) -> Table:
    columns = list(dict.fromkeys(name for row in answers["heat"].values() for name in row))
    rows = [
        {"name": scene, "cells": [f"{row[name][0]:.0%} of {row[name][1]}" if name in row else NONE for name in columns]}
        for scene, row in sorted(answers["heat"].items())
    ]
    return {
        "title": "Questions of the bank: people and the bank's own answers",
        "note": f"as MemoBench's figure 4, on the truth: {share(answers['agreement'])} of {answers['questions']} "
        f"questions alike, κ {number(answers['kappa'])}; {answers['left_out']} with no majority left out",
        "columns": columns,
        "rows": rows,
    }


def _strengths(found: Alignment) -> Table:
    models = sorted({one["model"] for fit in found.strengths.values() for one in fit["models"]})
    rows, steadied = [], []
    for dimension, fit in found.strengths.items():
        by = {one["model"]: one for one in fit["models"]}
        steadied += [dimension] if fit["prior"] else []
        cells = [within(by[m]["strength"], (by[m]["low"], by[m]["high"])) if m in by else NONE for m in models]
        rows.append({"name": dimension, "cells": cells})
    note = "Bradley-Terry, in log odds, centred on 0, with 95 % intervals over scenes"
    if steadied:
        note += f"; in {', '.join(steadied)} somebody never lost: half a win each way was added to every pair of models"
    return {"title": "Strengths by people's preferences", "note": note, "columns": models, "rows": rows}


def title_of(metric: str) -> str:
    return METRICS[metric].title if metric in METRICS else metric


def told(one: Agreement | None) -> str:
    return NONE if one is None else within(one.value, one.interval)


def within(value: float | None, interval: Sequence[float] | None) -> str:
    """0.71 (0.52 to 0.84)."""
    if value is None:
        return NONE
    return number(value) + ("" if interval is None else f" ({number(interval[0])} to {number(interval[1])})")


def number(value: float | None, digits: int = 2) -> str:
    return NONE if value is None else f"{value:.{digits}f}"


def share(value: float | None) -> str:
    return NONE if value is None else f"{value:.0%}"
