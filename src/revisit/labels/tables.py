"""Tables and figures of agreement and alignment, in the papers' layout; for the console, the report and people.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from revisit.core.text import read_package_yaml
from revisit.labels.agreement import FEWEST, AgreementReport, Quality, rater_qualities
from revisit.labels.alignment import PeopleAlignment
from revisit.labels.label import Label
from revisit.labels.store import Rater
from revisit.results.display import score_title
from revisit.results.tables import Table, make_table
from revisit.stats.agreement import Agreement

NONE, TOO_FEW = "–", "too few"
Shares = Mapping[str, Mapping[str, tuple[float, int]]]  # scene -> dimension -> share, and how many it rests on


def _make_named_table(
    id: str, rows: Iterable[tuple[str, Sequence[Any]]], columns: Sequence[str] = (), **words: object
) -> Table:
    """A table with the heading of tables.yaml, and with words in the gaps of that."""
    heading = read_package_yaml(__package__, "tables.yaml")[id]
    title, note = (heading[part].format(**words) for part in ("title", "note"))
    return make_table(title, note, columns or heading["columns"], rows)


def agreement_tables(report: AgreementReport) -> list[Table]:
    """Agreement by dimension (as WRBench's table 15), and the raters."""
    agreeing = [
        (
            f"{row.task}: {row.dimension}",
            [*map(str, (row.rated_twice, row.ratings, row.split)), percent_text(row.alike),
             *map(coefficient_text, (row.ac1, row.ac2, row.cohen, row.fleiss, row.alpha, row.alpha_ordinal))],
        )
        for row in report.rows
    ]  # fmt: skip
    return [
        _make_named_table("agreement", agreeing, too_few=TOO_FEW, fewest=FEWEST),
        _make_named_table("raters", [(one.rater, _rater_row(one)) for one in report.raters]),
    ]


def _rater_row(quality: Quality) -> list[str]:
    gold = NONE if quality.gold_right is None else f"{percent_text(quality.gold_right)} of {quality.gold}"
    numbers = [number_text(quality.seconds, 0), percent_text(quality.agrees), number_text(quality.kappa)]
    return [str(quality.items), *numbers, gold, percent_text(quality.left), percent_text(quality.cannot)]


def rater_rows(raters: Iterable[Rater], labels: Sequence[Label]) -> list[dict[str, object]]:
    """A row per rater for the page of the project."""
    figures_by_rater = {one.rater: _rater_row(one) for one in rater_qualities(labels)}
    names, nothing = ("answers", "seconds", "agrees", "kappa", "gold", "left", "cannot"), ["0", *[NONE] * 6]
    return [
        {**vars(rater), **dict(zip(names, figures_by_rater.get(rater.name, nothing), strict=True))} for rater in raters
    ]


def heat_tables(report: AgreementReport) -> list[Table]:
    """The share of equal answers by scene and dimension, as the heat map has it; none for one scene."""
    return [_heat_table("heat", report.heat, "{:.0%}")] if len(report.heat) > 1 else []


def alignment_tables(alignment: PeopleAlignment) -> list[Table]:
    """Win ratios, the bridge, triggers, answers and strengths; those that there are."""
    tables = []
    if alignment.bridges:
        tables += [_correlation_table(alignment), _pair_agreement_table(alignment)]
        tables += [_win_ratio_table(alignment)] if any(bridge.win_ratios for bridge in alignment.bridges) else []
    if alignment.triggers:
        tables.append(_trigger_table(alignment))
    if alignment.answers:
        tables.append(_bank_answer_table(alignment.answers))
    if alignment.strengths:
        tables.append(_strength_table(alignment))
    return tables


def figure_numbers(report: AgreementReport, alignment: PeopleAlignment) -> dict[str, list[dict[str, object]]]:
    """Numbers of the figures: heat maps and win ratios."""
    heat: list[dict[str, object]] = []
    ratios: list[dict[str, object]] = []
    if len(report.heat) > 1:
        heat.append({"title": "Raters alike, by scene and dimension", **_heat_columns_and_rows(report.heat)})
    if alignment.answers:
        title = "People's majority and the bank's answer alike, by scene and dimension"
        heat.append({"title": title, **_heat_columns_and_rows(alignment.answers["heat"])})
    for bridge in alignment.bridges:
        if bridge.win_ratios:
            people, metric = bridge.win_ratios.people, bridge.win_ratios.metric
            points = [[model, people[model], metric[model]] for model in people]
            ratios.append({"title": f"{bridge.dimension}: {score_title(bridge.metric)}", "points": points})
    return {"heat": heat, "ratios": ratios}


def _heat_columns_and_rows(cells: Shares) -> dict[str, Any]:
    """Shares by scene (rows) and dimension (columns)."""
    columns = list(dict.fromkeys(name for row in cells.values() for name in row))
    rows = [(scene, [row.get(name) for name in columns]) for scene, row in sorted(cells.items())]
    return {"columns": columns, "rows": rows}


def _heat_table(id: str, shares: Shares, cell_format: str, **words: object) -> Table:
    """A table of shares by scene and dimension; a cell is written from its share and how many it rests on."""
    heat = _heat_columns_and_rows(shares)
    texts = [[NONE if cell is None else cell_format.format(*cell) for cell in row] for _, row in heat["rows"]]
    return _make_named_table(id, zip(sorted(shares), texts, strict=True), heat["columns"], **words)


def _correlation_table(alignment: PeopleAlignment) -> Table:
    rows = []
    for bridge in alignment.bridges:
        ratios = bridge.win_ratios
        rho = number_with_interval_text(ratios.rho, ratios.rho_interval) if ratios else NONE
        tau = number_with_interval_text(ratios.tau, ratios.tau_interval) if ratios else NONE
        models = str(len(ratios.people) if ratios else 0)
        rows.append((bridge.dimension, [score_title(bridge.metric), rho, tau, models, str(bridge.bridged)]))
    return _make_named_table("correlations", rows)


def _pair_agreement_table(alignment: PeopleAlignment) -> Table:
    rows = []
    for bridge in alignment.bridges:
        holdout = bridge.holdout or {}
        judged: Mapping[str, Any] = {**bridge.judgeable} if bridge.judgeable else {}
        cells = [
            score_title(bridge.metric),
            number_text(bridge.agreement),
            f"{bridge.bridged} of {bridge.pairs}",
            number_text(bridge.rho),
            number_text(bridge.holdout_rho),
            number_text(holdout.get("tau"), 3),
            number_text(holdout.get("kappa")),
            number_text(holdout.get("weighted_kappa")),
            _join_numbers_by_slashes(holdout, "exact", "strict", "tie"),
            f"{holdout['reversals']} of {holdout['preferred']}" if holdout else NONE,
            _join_numbers_by_slashes(judged, "judgeable", "not_judgeable", "balanced"),
        ]
        rows.append((bridge.dimension, cells))
    return _make_named_table("pairs", rows)


def _join_numbers_by_slashes(facts: Mapping[str, float | None], *names: str) -> str:
    return "/".join(number_text(facts.get(name)) for name in names) if facts else NONE


def _win_ratio_table(alignment: PeopleAlignment) -> Table:
    ratios = [bridge.win_ratios for bridge in alignment.bridges if bridge.win_ratios]
    models = list(dict.fromkeys(model for one in ratios for model in one.people))
    rows = []
    for bridge in alignment.bridges:
        shares = (bridge.win_ratios.people, bridge.win_ratios.metric) if bridge.win_ratios else ({}, {})
        for name, won in zip(("people", score_title(bridge.metric)), shares, strict=True):
            rows.append((f"{bridge.dimension}: {name}", [number_text(won.get(model)) for model in models]))
    return _make_named_table("ratios", rows, models)


def _trigger_table(alignment: PeopleAlignment) -> Table:
    keys = ("accuracy", "precision", "recall", "f1", "kappa")
    triggers = alignment.triggers
    rows = [(name, [f"{one['n']:g}", *(number_text(one[key]) for key in keys)]) for name, one in triggers.items()]
    undecided = triggers.get("all", {}).get("undecided", 0)
    left_out = f"; {undecided} clips that the gate could not decide are left out" if undecided else ""
    return _make_named_table("triggers", rows, gate=alignment.trigger_gate, undecided=left_out)


def _bank_answer_table(answers: Mapping[str, Any]) -> Table:
    alike, kappa = percent_text(answers["agreement"]), number_text(answers["kappa"])
    words = {"alike": alike, "questions": answers["questions"], "kappa": kappa, "left_out": answers["left_out"]}
    return _heat_table("bank", answers["heat"], "{:.0%} of {}", **words)


def _strength_table(alignment: PeopleAlignment) -> Table:
    models = sorted({one["model"] for fit in alignment.strengths.values() for one in fit["models"]})
    rows, steadied = [], []
    for dimension, fit in alignment.strengths.items():
        texts = {m["model"]: number_with_interval_text(m["strength"], (m["low"], m["high"])) for m in fit["models"]}
        steadied += [dimension] if fit["prior"] else []
        rows.append((dimension, [texts.get(model, NONE) for model in models]))
    prior = f"; in {', '.join(steadied)} somebody never lost: half a win each way was added to every pair of models"
    return _make_named_table("strengths", rows, models, steadied=prior if steadied else "")


def coefficient_text(coefficient: Agreement | None) -> str:
    if coefficient is not None and coefficient.things < FEWEST:
        return TOO_FEW
    return NONE if coefficient is None else number_with_interval_text(coefficient.value, coefficient.interval)


def number_with_interval_text(value: float | None, interval: Sequence[float | None] | None) -> str:
    """0.71 (0.52 to 0.84)."""
    if value is None or interval is None:
        return number_text(value)
    return f"{number_text(value)} ({number_text(interval[0])} to {number_text(interval[1])})"


def number_text(value: float | None, digits: int = 2) -> str:
    return NONE if value is None else f"{value:.{digits}f}"


def percent_text(value: float | None) -> str:
    return NONE if value is None else f"{value:.0%}"
