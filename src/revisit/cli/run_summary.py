"""What a run found, as a person sees it: the verdict, tables of scores, diagnoses, and why clips are unscored."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from revisit.cli.console import print_first_lines_to_stderr, print_lines, print_table, print_to_stderr
from revisit.core.cases import clip_title
from revisit.core.grouping import group_items
from revisit.core.text import count_and_noun, join_names, printable_text
from revisit.results import Cell, display
from revisit.results.funnel import count_testable_and_all
from revisit.results.look_away_counts import ASK

MODELS_PER_TABLE = 6
LINES, NOTES = 10, 2  # of a verdict; all notes are in summary.json
LEAST_COMMON = 3  # clips that all models have, whose means stand beside; fewer are no mean
NAMED = 9  # metrics that one reason names
FEW_MARK = "*"
MEAN = "mean [95 %] (scored/all)"


@dataclass
class _Printout:
    """A summary that is being printed: what it says, whether all of it is wanted, and the folder of the run."""

    content: Mapping[str, Any]
    show_all: bool
    folder: Path | None


def print_run_summary(content: Mapping[str, Any], show_all: bool = False, folder: Path | None = None) -> None:
    """Print what a run found: the verdict and its few columns; with `all`, every metric, part and reason.

    Commands in sentences name the `folder` of the run.
    """
    if content.get("partial"):
        print_to_stderr(f"partial: --limit took {content['cases']} of {content['total_cases']} cases")
    if _all_clips_failed(content) and not show_all:
        typer.echo("no clip could be scored")
        sections: Sequence[Callable[[_Printout], None]] = (_print_rejected_and_failed,)
    else:
        sections = SECTIONS
    ranking = content.get("verdict")
    # Where no question could be asked, what there is says why.
    show_all = show_all or not ranking or not any(answer["metric"] for answer in ranking["answers"])
    printout = _Printout(content, show_all, folder)
    for print_section in sections:
        print_section(printout)


def _all_clips_failed(content: Mapping[str, Any]) -> bool:
    """Whether every metric failed on every clip that is there, as where no file can be read."""
    cells = [cell for entry in content["models"].values() for cell in entry.get("scores", {}).values()]
    there = [cell["of"] - cell.get("unscored", {}).get("missing", 0) for cell in cells]
    return any(there) and all(cell.get("failed", 0) == n for cell, n in zip(cells, there, strict=True))


def _print_rejected_and_failed(printout: _Printout) -> None:
    """Print why entries were refused and what failed, a line per reason."""
    content = printout.content
    for entry in content["rejected"][:10]:
        word = "missing" if entry.get("missing") else "rejected"
        print_to_stderr(f"{word}: {clip_title(entry['id'])}: {entry['reason']}")
    failed = list(group_items(content["failed"], lambda entry: entry["reason"]).items())
    for reason, entries in failed[:10]:  # a metric that fails everywhere is one line
        further = f" and {count_and_noun(len(entries) - 1, 'more clip')}" if len(entries) > 1 else ""
        print_to_stderr(f"failed: {clip_title(entries[0]['case'])}{further}: {reason}")
    remaining = len(content["rejected"][10:]) + sum(len(entries) for _, entries in failed[10:])
    if remaining:
        print_to_stderr(f"... and {remaining} more; see summary.json")


def print_verdict(ranking: Mapping[str, Any], content: Mapping[str, Any], folder: Path | None = None) -> None:
    """Print who looks away and comes back, the answers to the suite's questions, a line each, and a table of both."""
    counts = ranking.get("look_away")
    lines = [("Judge", ranking["judge"]["sentence"])] if ranking.get("judge") else []
    lines += [(ASK, counts["sentence"])] if counts else []
    lines += [
        (answer["question"]["ask"], _name_run_in_commands(answer["sentence"], folder))
        for answer in ranking["answers"]
        if answer.get("asked", True)  # else only other metrics were asked for
    ]
    lines += [("Overall", ranking["sentence"])] if ranking["sentence"] else []
    notes = [("Note", sentence) for sentence in ranking["trade_offs"][:NOTES]]
    if low := ranking["low_ceilings"]:
        titles = [f"{content['metrics'].get(metric, {}).get('title', metric)} ({n} clips)" for metric, n in low.items()]
        notes.append(("Note", f"the truth itself scores low in {join_names(titles, NAMED)}"))
    moments = [
        f"{moment['model']}, {moment['sample']}"
        + (f", seed {moment['seed']}" if moment.get("seed") else "")
        + (f", frame {moment['frame']}" if moment["frame"] is not None else "")
        + f" ({moment['why']})"
        for moment in ranking["moments"]
    ]
    last = [("Worst moments", "; ".join(moments))] if moments else []
    lines += [*notes[: max(1, LINES - len(lines) - len(last))], *last]
    indent = max((len(name) for name, _ in lines), default=0) + 2
    for name, sentence in lines:
        typer.echo(_wrap_on_terminal(printable_text(f"{name:{indent}}{sentence}"), indent))
    answers = [answer for answer in ranking["answers"] if answer["metric"]]
    if answers or counts:
        _print_score_table(*_verdict_table(answers, content, counts))


def _print_verdict_of_run(printout: _Printout) -> None:
    if ranking := printout.content.get("verdict"):
        print_verdict(ranking, printout.content, printout.folder)


def _name_run_in_commands(text: str, folder: Path | None) -> str:
    """A sentence of the verdict, which is the same wherever the run lies, with the run's folder in its commands."""
    if folder is None:
        return text
    return re.sub(r"(`revisit \w+ )RUN\b", lambda match: match[1] + shlex.quote(str(folder)), text)


def _verdict_table(
    answers: Sequence[Mapping[str, Any]], content: Mapping[str, Any], counts: Mapping[str, Any] | None
) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the table under the verdict: models, and the truth as a row of its own."""
    columns = [_QuestionColumn(answer) for answer in answers]
    models = content["models"]
    if counts:
        away_heads = ["looks away", "comes back"]
        away = {model: _look_away_texts(counts["models"].get(model)) for model in models}
    else:
        testable = _testable_clip_texts(models)
        away_heads = ["testable clips"] if testable else []
        away = {model: [testable[model]] if testable else [] for model in models}

    def model_rows(interval: bool) -> list[list[str]]:
        table_rows = []
        for model, entry in models.items():
            texts = [text for column in columns for text in column.cell_texts(model, entry, interval)]
            table_rows.append([_model_heading(model, entry), *away[model], *texts])
        if any(column.truth for column in columns):
            texts = [text for column in columns for text in column.truth_cell_texts(interval)]
            table_rows.append([_truth_heading(content["truth"]), *([""] * len(away_heads)), *texts])
        return table_rows

    heads = [MEAN, *away_heads]
    for column, answer in zip(columns, answers, strict=True):
        mark = display.stand_in_suffix_text(content["metrics"].get(answer["metric"], {}))
        heads.append(display.score_title_with_arrow(answer.get("score") or answer["metric"]) + mark)
        heads += [f"on the {answer['clips']} clips that all have"] if column.has_common else []
    wide = model_rows(interval=True)
    lengths = [max(len(row[column]) for row in [*wide, heads[:1] * len(heads)]) for column in range(len(heads))]
    return heads, wide if sum(lengths) + 3 * len(lengths) <= _screen_width() else model_rows(interval=False)


def _look_away_texts(count: Mapping[str, int] | None) -> list[str]:
    """`3 of 4` and `2 of 4, 1 not read`: clips that look away, and that come back; the others beside them."""
    if not count:
        return ["", ""]
    due = count["asked"] + count.get("missing", 0)
    others = {"missing": count.get("missing", 0), "not read": count["unreadable"]}
    left, back = (f"{count[name]} of {due}" if due else "" for name in ("left", "returned"))
    return [left, ", ".join(filter(None, [back, *(f"{n} {what}" for what, n in others.items() if n)]))]


def _testable_clip_texts(models: Mapping[str, Any]) -> dict[str, str]:
    """How many clips of each model are testable; nothing where nobody was asked."""
    counts = {model: count_testable_and_all(entry["funnel"]) for model, entry in models.items()}
    if not any(counts.values()):
        return {}
    return {model: f"{count[0]}/{count[1]}" if count else "not asked" for model, count in counts.items()}


class _QuestionColumn:
    """The column of a question, and beside it the means on the clips that all models have, where these are fewer."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.metric, self.kind = answer["metric"], "held" if answer["near_truth"] else "scores"
        ranked = {place["model"]: place["cell"] for place in answer["places"]}
        everybody = {**ranked, **answer.get("unranked", {})}
        self.cells = {model: Cell.from_json(entry) for model, entry in everybody.items()}
        commons = {place["model"]: place.get("common") for place in answer["places"]}
        self.common = {model: Cell.from_json(entry) for model, entry in commons.items() if entry}
        shared = answer["clips"] >= LEAST_COMMON
        self.has_common = shared and any(cell.n < self.cells[model].n for model, cell in self.common.items())
        self.truth = Cell.from_json(answer["truth"]) if answer["truth"] else None

    def cell_texts(self, model: str, entry: Mapping[str, Any], interval: bool) -> list[str]:
        own = score_cell_text(entry.get(self.kind, {}).get(self.metric, {"n": 0, "of": 0}))
        text = _cell_text_with_mark(self.cells[model], interval) if model in self.cells else own
        beside = display.number_text(self.common[model].mean) if model in self.common else ""
        return [text, beside] if self.has_common else [text]

    def truth_cell_texts(self, interval: bool) -> list[str]:
        text = "" if self.truth is None else _cell_text_with_mark(self.truth, interval)
        return [text, ""] if self.has_common else [text]


def _screen_width() -> int:
    return shutil.get_terminal_size((200, 24)).columns if sys.stdout.isatty() else 200


def _wrap_on_terminal(text: str, indent: int) -> str:
    if not sys.stdout.isatty():
        return text
    return textwrap.fill(text, max(_screen_width(), 2 * indent), subsequent_indent=" " * indent, break_long_words=False)


def _split_models_into_tables(models: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The models of each table, with what is known of them."""
    names = list(models)
    for start in range(0, len(names), MODELS_PER_TABLE):
        yield {name: models[name] for name in names[start : start + MODELS_PER_TABLE]}


def _print_headline_tables(printout: _Printout) -> None:
    """Print the tables that a suite puts first."""
    for extra in printout.content.get("headline", []):
        print_suite_table(extra)


def _print_sentences(printout: _Printout) -> None:
    print_to_stderr(*printout.content.get("sentences", []))


def _print_all_scores(printout: _Printout) -> None:
    """Print all metrics down, models across, each mean with its interval, n and coverage; the truth comes last."""
    content = printout.content
    if not printout.show_all:
        return
    truth, tables = content.get("truth"), list(_split_models_into_tables(content["models"]))
    for models in tables:
        testable = _testable_clip_texts(models)
        entries = {_model_heading(model, entry): entry for model, entry in models.items()}
        if truth and models is tables[-1]:
            entries[_truth_heading(truth)] = truth
        blanks = [""] * (len(entries) - len(models))
        rows = [["testable clips", *testable.values(), *blanks]] if testable else []
        _print_score_table([MEAN, *entries], [*rows, *_metric_score_rows(content["metrics"], entries)])


def _model_heading(model: str, entry: Mapping[str, Any]) -> str:
    """A model's name; one that is no model, such as a floor, says so."""
    return f"{model} ({entry['category']})" if entry.get("category") else model


def _truth_heading(truth: Mapping[str, Any]) -> str:
    return f"{truth.get('name', 'truth')} (ceiling)"


def _print_unscored_reasons(printout: _Printout) -> None:
    """Print how many clips each kind of reason left unscored, metric by metric, and what was not asked at all."""
    content = printout.content
    if not printout.show_all:
        return
    clips_by_kind: dict[str, Counter[str]] = defaultdict(Counter)
    for entry in content["models"].values():
        for id, score in entry.get("scores", {}).items():
            for kind, n in score.get("unscored", {}).items():
                clips_by_kind[kind][id] += n
    for kind, counts in sorted(clips_by_kind.items()):
        metrics = join_names([f"{id} {n}" for id, n in counts.items()], NAMED)
        print_to_stderr(f"unscored, {display.reason_title(kind)}: {metrics}")
    reasons = content["not_asked"]
    for reason, ids in sorted(group_items(reasons, reasons.__getitem__).items()):
        print_to_stderr(f"not asked: {join_names(ids, NAMED)}: {reason}")


def print_suite_table(extra: Mapping[str, Any]) -> None:
    """Print a table of a suite: of scores, or of texts. Rows that are a detail are left to the report."""
    print_lines(f"{extra['title']} ({extra['note']})")
    rows = [[row["name"], *map(score_cell_text, row["cells"])] for row in extra["rows"] if not row.get("detail")]
    _print_score_table(["", *extra["columns"]], rows)


def print_tables_of_parts(tables: Mapping[str, Any], metrics: Mapping[str, Any]) -> None:
    """Print a table for each part of the clips."""
    for name, part in tables.items():
        columns = {id: metrics[id] for id in part["metrics"]}
        for models in _split_models_into_tables(part["models"]):
            _print_score_table([name, *models], _metric_score_rows(columns, models))


def _print_tables_of_parts_and_suite(printout: _Printout) -> None:
    content = printout.content
    if printout.show_all:
        print_tables_of_parts(content.get("parts", {}), content["metrics"])
        for extra in content.get("tables", []):
            print_suite_table(extra)


def _metric_score_rows(columns: Mapping[str, Any], entries: Mapping[str, Any]) -> list[list[str]]:
    """A row per metric, as measured, and below it one held to the truth, where these are other numbers."""
    rows = []
    for id, column in columns.items():
        for kind, named in (("scores", ""), ("held", display.HELD_TITLE)):
            if kind == "scores" or any(id in entry.get(kind, {}) for entry in entries.values()):
                title = f"{column['title']}{named}{display.stand_in_suffix_text(column)}"
                head = f"{title} {display.direction_arrow(column['higher_is_better'])}".rstrip()
                contents = [entry.get(kind, {}).get(id) for entry in entries.values()]
                rows.append([head, *("" if content is None else score_cell_text(content) for content in contents)])
    return rows


def _print_diagnoses(printout: _Printout) -> None:
    """Print for each model which failures its clips show, and in how many of them."""
    for model, entry in (printout.content.get("diagnosis") or {}).get("models", {}).items():
        clips = count_and_noun(entry["clips"] + entry["unreadable"], "clip")
        findings = ", ".join(f"{title} {n}" for title, n in entry["findings"].items())
        text = entry.get("sentence") or findings or "see diagnosis.json"  # runs of earlier versions have no sentence
        print_to_stderr(f"diagnosis of {model} ({clips}): {text}")


def _print_remarks(printout: _Printout) -> None:
    """Print notes on how the source was read and what the numbers rest on."""
    remarks = [f"note: {remark}" for remark in printout.content.get("notes", [])]
    print_first_lines_to_stderr(remarks, 5, "more notes; see summary.json")


def _print_what_all_shows(printout: _Printout) -> None:
    """Print what `--all` would add."""
    content = printout.content
    if not printout.show_all:
        unavailable = f", {len(content['not_asked'])} that could not be asked" if content["not_asked"] else ""
        print_to_stderr(f"--all shows all {len(content['metrics'])} metrics{unavailable}, and why clips are unscored")


SECTIONS = (
    _print_verdict_of_run,
    _print_headline_tables,
    _print_all_scores,
    _print_sentences,
    _print_tables_of_parts_and_suite,
    _print_diagnoses,
    _print_unscored_reasons,
    _print_remarks,
    _print_rejected_and_failed,
    _print_what_all_shows,
)


def print_file_notes(plan: Mapping[str, Any], notes_by_clip: Mapping[str, Sequence[str]]) -> None:
    """Print what was noticed about files, a line each, for the first ten."""
    names = {case["digest"]: case["id"] for case in plan["cases"]}
    pairs = [(names.get(clip, clip[:12]), note) for clip, notes in notes_by_clip.items() for note in notes]
    lines = [f"note: {clip_title(name)}: {note}" for name, note in pairs]
    print_first_lines_to_stderr(lines, 10, "more notes; see run.json")


def _cell_text_with_mark(cell: Cell, interval: bool = True) -> str:
    """The text of a cell; a mark says that scenes are too few, which stands below the table once."""
    return display.cell_text(cell, interval).replace(f"; {display.FEW_SCENES})", f"){FEW_MARK}")


def _print_score_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print_table(columns, rows, numbers=True)
    if any(cell.endswith(f"){FEW_MARK}") for row in rows for cell in row):
        typer.echo(f"{FEW_MARK} {display.FEW_SCENES}: no interval")


def score_cell_text(content: Mapping[str, Any] | str) -> str:
    """`0.71 [0.66 to 0.76] (12/20)`; a dash without a score; the cell's own text where it has one, as ranks do."""
    if isinstance(content, str):
        return content
    return str(content.get("text") or _cell_text_with_mark(Cell.from_json(content)))
