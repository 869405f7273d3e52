"""What a person sees: tables, progress with time left, and plain lines where there is no terminal."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

MODELS_PER_TABLE = 6
LINES, NOTES = 10, 2  # of a verdict; all notes are in summary.json
LEAST_COMMON = 3  # clips that all models have, whose means stand beside; fewer are no mean
NAMED = 8  # metrics that one reason names
FIRST_WORD = 4.0  # seconds until a line says that the first clip is being observed


def print_json(content: Any) -> None:
    """Print JSON to stdout. Half characters, which no screen can show, become question marks."""
    typer.echo(json.dumps(content, indent=1, ensure_ascii=False, default=str).encode(errors="replace").decode())


def message(text: str) -> None:
    """Print a line to stderr."""
    typer.echo(clean_text(text), err=True)


def write_or_print(text: str, out: Path | None) -> None:
    """Write text to a file and print its path, or print the text itself to stdout."""
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
        typer.echo(str(out))


def clean_text(text: str) -> str:
    """Text without control characters, so that a file name cannot drive the terminal."""
    from revisit.core.text import printable_text

    return printable_text(text)


def pluralize(count: int, noun: str) -> str:
    """`1 clip`, `2 clips`. The library is imported late: it brings numpy, which --help can do without."""
    from revisit.core.text import pluralize as with_noun

    return with_noun(count, noun)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = False) -> None:
    """Print a table to stdout; as wide as it needs to be where nobody's screen limits it."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else 200)
    grid = Table(box=SIMPLE_HEAD, pad_edge=False)
    for position, column in enumerate(columns):
        grid.add_column(clean_text(column), justify="right" if position and numbers else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(clean_text(cell)) for cell in row))
    console.print(grid)


class ProgressBar:
    """A progress bar with time left, on a terminal."""

    def __init__(self) -> None:
        from rich import progress as rich
        from rich.console import Console

        self.progress = rich.Progress(
            rich.SpinnerColumn(), rich.TextColumn("observing"), rich.BarColumn(), rich.MofNCompleteColumn(),
            rich.TextColumn("clips"), rich.TimeElapsedColumn(), rich.TimeRemainingColumn(),
            rich.TextColumn("{task.fields[what]}"), console=Console(stderr=True), transient=True,
        )  # fmt: skip

    def start(self, clips: int, cases: int, observed: int) -> None:
        first = "at the first clip" if observed < clips else ""
        self.task = self.progress.add_task("", total=clips, completed=observed, what=first)
        self.progress.start()

    def advance(self, what: str, failed: int) -> None:
        trouble = f"  {failed} failed" if failed else ""
        self.progress.update(self.task, advance=1, what=clean_text(what)[:40] + trouble)

    def asked(self, count: int, total: int, cost: str) -> None:
        self.progress.update(self.task, what=f"asked {count} of {total} lists of questions, {cost}")

    def finish(self) -> None:
        self.progress.stop()


class ProgressLines:
    """Progress as plain lines, a few per minute, for logs and batch systems."""

    def __init__(self, every: float = 10.0) -> None:
        self.every = every

    def start(self, clips: int, cases: int, observed: int) -> None:
        self.clips, self.done, self.started_at, self.printed_at = clips, observed, time.monotonic(), 0.0
        self.first = observed
        message(f"{pluralize(cases, 'case')}, {pluralize(clips, 'clip')}, {observed} already observed")
        self.waiting = threading.Timer(FIRST_WORD, self._waits)
        self.waiting.daemon = True
        if observed < clips:
            self.waiting.start()

    def _waits(self) -> None:
        """A word while the first clip takes its time, so that nobody takes the silence for a hang."""
        if self.done == self.first:
            message(
                f"first clip: {time.monotonic() - self.started_at:.0f} s so far; the time left is known once it is done"
            )

    def advance(self, what: str, failed: int) -> None:
        self.waiting.cancel()
        self.done += 1
        now = time.monotonic()
        if now - self.printed_at < self.every and self.done < self.clips:
            return
        self.printed_at = now
        rate = (now - self.started_at) / max(self.done - self.first, 1)
        remaining = f", about {_duration(rate * (self.clips - self.done))} left" if self.done < self.clips else ""
        done = min(self.done, self.clips)  # a reference that two workers decoded counts once
        message(f"observed {done} of {self.clips} clips{remaining}" + (f", {failed} failed" if failed else ""))

    def asked(self, count: int, total: int, cost: str) -> None:
        now = time.monotonic()
        if now - self.printed_at >= self.every or count == total:
            self.printed_at = now
            message(f"asked {count} of {total} lists of questions, {cost}")

    def finish(self) -> None:
        self.waiting.cancel()


class Counter:
    """A running count of steps: one line that is written over on a terminal, a few lines elsewhere."""

    def __init__(self, label: str, every: float = 5.0) -> None:
        self.label, self.every, self.printed_at = label, every, 0.0

    def __call__(self, count: int, total: int, what: str) -> None:
        now = time.monotonic()
        if sys.stderr.isatty():
            typer.echo(f"\r\x1b[K{self.label} {count} of {total}", err=True, nl=count == total)
        elif count == total or now - self.printed_at > self.every:
            self.printed_at = now
            message(f"{self.label} {count} of {total}")


def progress(quiet: bool = False) -> Any:
    """A bar on a terminal, lines elsewhere, nothing if asked."""
    if quiet:
        return None
    return ProgressBar() if sys.stderr.isatty() else ProgressLines()


@contextmanager
def resumable(where: Path | None = None) -> Iterator[None]:
    """Ctrl-C ends what the same command continues, with a word about that."""
    try:
        yield
    except KeyboardInterrupt:
        message("interrupted; run the same command to continue" + (f" ({where})" if where else ""))
        raise typer.Exit(130) from None


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def print_run_summary(content: Mapping[str, Any], show_all: bool = False) -> None:
    """Print what a run found: the verdict and its few columns; with `all`, every metric, part and reason."""
    if content.get("partial"):
        message(f"partial: --limit took {content['cases']} of {content['total_cases']} cases")
    ranking = content.get("verdict")
    if ranking and not any(answer["metric"] for answer in ranking["answers"]):
        show_all = True  # no question could be asked: what there is says why
    if ranking:
        print_verdict(ranking, content)
    for extra in content.get("headline", []):
        print_suite_table(extra)
    if show_all or not ranking:
        _print_all_scores(content)
    for sentence in content.get("sentences", []):
        message(sentence)
    if show_all or not ranking:
        print_parts(content.get("parts", {}), content["metrics"])
        for extra in content.get("tables", []):
            print_suite_table(extra)
    print_diagnoses(content.get("diagnosis") or {})
    if show_all or not ranking:
        _print_unscored(content["models"])
        _print_not_asked(content["not_asked"])
    remarks = content.get("notes", [])
    for remark in remarks[:5]:
        message(f"note: {remark}")
    if len(remarks) > 5:
        message(f"... and {len(remarks) - 5} more notes; see summary.json")
    for entry in content["rejected"][:10]:
        message(f"rejected: {entry['id']}: {entry['reason']}")
    failed: dict[str, list[str]] = {}  # a metric that fails everywhere is one line
    for entry in content["failed"]:
        failed.setdefault(entry["reason"], []).append(entry["case"])
    for reason, cases in list(failed.items())[:10]:
        further = f" and {pluralize(len(cases) - 1, 'more clip')}" if len(cases) > 1 else ""
        message(f"failed: {cases[0]}{further}: {reason}")
    remaining = len(content["rejected"][10:]) + sum(len(cases) for cases in list(failed.values())[10:])
    if remaining:
        message(f"... and {remaining} more; see summary.json")
    if ranking and not show_all:
        unavailable = f", {len(content['not_asked'])} that could not be asked" if content["not_asked"] else ""
        message(f"--all shows all {len(content['metrics'])} metrics{unavailable}, and why clips are unscored")


def print_verdict(ranking: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    """Print who looks away and comes back, the answers to the suite's questions, a line each, and a table of both."""
    from revisit.results.look_away_counts import ASK

    counts = ranking.get("look_away")
    lines = [("Judge", ranking["judge"]["sentence"])] if ranking.get("judge") else []
    lines += [(ASK, counts["sentence"])] if counts else []
    lines += [(answer["question"]["ask"], answer["sentence"]) for answer in ranking["answers"]]
    lines += [("Overall", ranking["sentence"])] if ranking["sentence"] else []
    notes = [("Note", sentence) for sentence in ranking["trade_offs"][:NOTES]]
    if low := ranking["low_ceilings"]:
        metrics = _join_names(
            [f"{content['metrics'].get(metric, {}).get('title', metric)} ({n} clips)" for metric, n in low.items()]
        )
        notes.append(("Note", f"the truth itself scores low in {metrics}"))
    moments = [
        f"{moment['model']}, {moment['sample']}"
        + (f", frame {moment['frame']}" if moment["frame"] is not None else "")
        + f" ({moment['why']})"
        for moment in ranking["moments"]
    ]
    last = [("Worst moments", "; ".join(moments))] if moments else []
    lines += [*notes[: max(1, LINES - len(lines) - len(last))], *last]
    indent = max((len(name) for name, _ in lines), default=0) + 2
    for name, sentence in lines:
        typer.echo(_wrap(clean_text(f"{name:{indent}}{sentence}"), indent))
    answers = [answer for answer in ranking["answers"] if answer["metric"]]
    if answers or counts:
        print_table(*_by_question(answers, content, counts), numbers=True)


def _by_question(
    answers: Sequence[Mapping[str, Any]], content: Mapping[str, Any], counts: Mapping[str, Any] | None
) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the table under the verdict: models, and the truth as a row of its own."""
    from revisit.results.display import column_head, stand_in_mark

    columns = [_QuestionColumn(answer) for answer in answers]
    away_heads, away = _look_away_column(content["models"], counts)

    def rows(interval: bool) -> list[list[str]]:
        table_rows = []
        for model, entry in content["models"].items():
            texts = [text for column in columns for text in column.texts(model, entry, interval)]
            table_rows.append([_model_heading(model, entry), *away[model], *texts])
        if any(column.truth for column in columns):
            texts = [text for column in columns for text in column.truth_texts(interval)]
            table_rows.append([_ceiling(content["truth"]), *([""] * len(away_heads)), *texts])
        return table_rows

    heads = ["mean [95 %] (scored/all)", *away_heads]
    for column, answer in zip(columns, answers, strict=True):
        mark = stand_in_mark(content["metrics"].get(answer["metric"], {}))
        heads.append(column_head(answer.get("score") or answer["metric"]) + mark)
        heads += [f"on the {answer['clips']} clips of all"] if column.has_common else []
    wide = rows(interval=True)
    lengths = [max(len(row[column]) for row in [*wide, heads[:1] * len(heads)]) for column in range(len(heads))]
    return heads, wide if sum(lengths) + 3 * len(lengths) <= _width() else rows(interval=False)


def _look_away_column(
    models: Mapping[str, Any], counts: Mapping[str, Any] | None
) -> tuple[list[str], dict[str, list[str]]]:
    """Head and cells of the column of those that look away and come back; of testable clips where nobody counted."""
    from revisit.results.funnel import count_testable

    if counts:
        counts_by_model = {model: counts["models"].get(model) for model in models}
        text = {model: _look_away_text(count) if count else "" for model, count in counts_by_model.items()}
        return ["looks away, comes back"], {model: [text[model]] for model in models}
    testable = {model: count_testable(entry["funnel"]) for model, entry in models.items()}
    if not any(testable.values()):
        return [], {model: [] for model in models}
    shares = {model: f"{count[0]}/{count[1]}" if count else "not asked" for model, count in testable.items()}
    return ["testable clips"], {model: [shares[model]] for model in models}


def _look_away_text(count: Mapping[str, int]) -> str:
    """`3, 2 of 4`: clips that look away, and that come back; clips that could not be read beside them."""
    unread = f"{count['unreadable']} not read" if count["unreadable"] else ""
    asked = f"{count['left']}, {count['returned']} of {count['asked']}" if count["asked"] else ""
    return ", ".join(filter(None, [asked, unread]))


class _QuestionColumn:
    """The column of a question, and beside it the means on the clips that all models have, where these are fewer."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        from revisit.results import Cell

        self.metric, self.is_held = answer["metric"], answer["near_truth"]
        ranked = {place["model"]: place["cell"] for place in answer["places"]}
        everybody = {**ranked, **answer.get("unranked", {})}
        self.cells = {model: Cell.from_json(entry) for model, entry in everybody.items()}
        commons = {place["model"]: place.get("common") for place in answer["places"]}
        self.common = {model: Cell.from_json(entry) for model, entry in commons.items() if entry}
        shared = answer["clips"] >= LEAST_COMMON
        self.has_common = shared and any(cell.n < self.cells[model].n for model, cell in self.common.items())
        self.truth = Cell.from_json(answer["truth"]) if answer["truth"] else None

    def texts(self, model: str, entry: Mapping[str, Any], interval: bool) -> list[str]:
        from revisit.results.display import cell_text, number

        kind = "held" if self.is_held else "scores"
        own = cell(entry.get(kind, {}).get(self.metric, {"n": 0, "of": 0}))
        text = cell_text(self.cells[model], interval) if model in self.cells else own
        beside = number(self.common[model].mean) if model in self.common else ""
        return [text, beside] if self.has_common else [text]

    def truth_texts(self, interval: bool) -> list[str]:
        from revisit.results.display import cell_text

        text = "" if self.truth is None else cell_text(self.truth, interval)
        return [text, ""] if self.has_common else [text]


def _width() -> int:
    return shutil.get_terminal_size((200, 24)).columns if sys.stdout.isatty() else 200


def _wrap(text: str, indent: int) -> str:
    if not sys.stdout.isatty():
        return text
    return textwrap.fill(text, max(_width(), 2 * indent), subsequent_indent=" " * indent, break_long_words=False)


def _print_all_scores(content: Mapping[str, Any]) -> None:
    """Print all metrics down, models across, each mean with its interval, n and coverage."""
    from revisit.results.funnel import count_testable

    models, truth = list(content["models"]), content.get("truth")
    for start in range(0, len(models), MODELS_PER_TABLE):
        models_of_table = models[start : start + MODELS_PER_TABLE]
        counts = [count_testable(content["models"][model]["funnel"]) for model in models_of_table]
        shares = [f"{count[0]}/{count[1]}" if count else "not asked" for count in counts]
        rows = [["testable clips", *shares]] if any(counts) else []
        heads = [_model_heading(model, content["models"][model]) for model in models_of_table]
        entries = {model: content["models"][model] for model in models_of_table}
        if truth and start + MODELS_PER_TABLE >= len(models):
            heads.append(_ceiling(truth))
            entries[heads[-1]] = truth
            rows = [[*row, ""] for row in rows]
        rows += _score_rows(content["metrics"], entries)
        print_table(["mean [95 %] (scored/all)", *heads], rows, numbers=True)


def _model_heading(model: str, entry: Mapping[str, Any]) -> str:
    """A model's name; one that is no model, such as a floor, says so."""
    return f"{model} ({entry['category']})" if entry.get("category") else model


def _ceiling(truth: Mapping[str, Any]) -> str:
    return f"{truth.get('name', 'truth')} (ceiling)"


def _print_not_asked(reasons: Mapping[str, str]) -> None:
    from revisit.core.grouping import group_items

    for reason, ids in sorted(group_items(reasons, lambda id: reasons[id]).items()):
        message(f"not asked: {_join_names(ids)}: {reason}")


def _print_unscored(models: Mapping[str, Any]) -> None:
    """Print a line per kind of reason: how many clips it left unscored, metric by metric."""
    from revisit.results.display import reason_title

    clips_by_kind: dict[str, dict[str, int]] = {}
    for entry in models.values():
        for id, score in entry.get("scores", {}).items():
            for kind, n in score.get("unscored", {}).items():
                counts = clips_by_kind.setdefault(kind, {})
                counts[id] = counts.get(id, 0) + n
    for kind, counts in sorted(clips_by_kind.items()):
        message(f"unscored, {reason_title(kind)}: {_join_names([f'{id} {n}' for id, n in counts.items()])}")


def _join_names(words: Sequence[str]) -> str:
    return ", ".join(words[:NAMED]) + (f" and {len(words) - NAMED} more" if len(words) > NAMED else "")


def print_suite_table(extra: Mapping[str, Any]) -> None:
    """Print a table of a suite: of scores, or of texts. Rows that are a detail are left to the report."""
    typer.echo(clean_text(f"{extra['title']} ({extra['note']})"))
    rows = [[row["name"], *map(cell, row["cells"])] for row in extra["rows"] if not row.get("detail")]
    print_table(["", *extra["columns"]], rows, numbers=True)


def print_parts(tables: Mapping[str, Any], metrics: Mapping[str, Any]) -> None:
    """Print a table for each part of the clips."""
    for name, part in tables.items():
        columns = {id: metrics[id] for id in part["metrics"]}
        for start in range(0, len(part["models"]), MODELS_PER_TABLE):
            models_of_table = list(part["models"])[start : start + MODELS_PER_TABLE]
            entries = {model: part["models"][model] for model in models_of_table}
            print_table([name, *models_of_table], _score_rows(columns, entries), numbers=True)


def _score_rows(columns: Mapping[str, Any], entries: Mapping[str, Any]) -> list[list[str]]:
    """A row per metric, as measured, and below it one held to the truth, where these are other numbers."""
    from revisit.results.display import HELD_TITLE, arrow, stand_in_mark

    rows = []
    for id, column in columns.items():
        for kind, named in (("scores", ""), ("held", HELD_TITLE)):
            if kind == "scores" or any(id in entry.get(kind, {}) for entry in entries.values()):
                title = f"{column['title']}{named}{stand_in_mark(column)}"
                head = f"{title} {arrow(column['higher_is_better'])}".rstrip()
                contents = [entry.get(kind, {}).get(id) for entry in entries.values()]
                rows.append([head, *("" if content is None else cell(content) for content in contents)])
    return rows


def print_diagnoses(content: Mapping[str, Any]) -> None:
    """Print for each model which failures its clips show, and in how many of them."""
    for model, entry in content.get("models", {}).items():
        clips = pluralize(entry["clips"] + entry["unreadable"], "clip")
        findings = ", ".join(f"{title} {n}" for title, n in entry["findings"].items())
        text = entry.get("sentence") or findings or "see diagnosis.json"  # runs of earlier versions have no sentence
        message(f"diagnosis of {model} ({clips}): {text}")


def print_notes(plan: Mapping[str, Any], notes_by_clip: Mapping[str, Sequence[str]]) -> None:
    """Print what was noticed about files, a line each, for the first ten."""
    names = {case["digest"]: case["id"] for case in plan["cases"]}
    lines = [
        f"note: {names.get(clip, clip[:12])}: {note}"
        for clip, clip_notes in notes_by_clip.items()
        for note in clip_notes
    ]
    for line in lines[:10]:
        message(line)
    if len(lines) > 10:
        message(f"... and {len(lines) - 10} more notes; see run.json")


def cell(content: Mapping[str, Any] | str) -> str:
    """`0.71 [0.66 to 0.76] (12/20)`; a dash without a score; the cell's own text where it has one, as ranks do."""
    from revisit.results import Cell
    from revisit.results.display import cell_text

    if isinstance(content, str):
        return content
    return str(content.get("text") or cell_text(Cell.from_json(content)))
