"""What a person sees: tables, progress with time left, and plain lines where there is no terminal."""

from __future__ import annotations

import json as json_
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

FIRST_WORD = 4.0  # seconds until a line says that the first clip is being observed


def print_json(content: Any) -> None:
    """Print JSON to stdout. Half characters, which no screen can show, become question marks."""
    typer.echo(json_.dumps(content, indent=1, ensure_ascii=False, default=str).encode(errors="replace").decode())


def print_json_or_text(content: Any, text: str, json: bool) -> None:
    """Print JSON where it was asked for, else a text."""
    if json:
        print_json(content)
    else:
        typer.echo(text)


def print_lines(*lines: str, err: bool = False) -> None:
    """Print lines that hold names from outside to stdout."""
    for line in lines:
        typer.echo(without_control_characters(line), err=err)


def print_to_stderr(*lines: str) -> None:
    """Print lines to stderr."""
    print_lines(*lines, err=True)


def print_notes(*remarks: str) -> None:
    """Print remarks to stderr, as such."""
    print_to_stderr(*(f"note: {remark}" for remark in remarks))


def write_or_print(text: str, out: Path | None) -> None:
    """Write text to a file and print its path, or print the text itself to stdout."""
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
        typer.echo(str(out))


def without_control_characters(text: str) -> str:
    """Text without control characters, so that a file name cannot drive the terminal."""
    from revisit.core.text import printable_text

    return printable_text(text)


def print_first_lines_to_stderr(lines: Sequence[str], max_lines: int, remaining: str = "more") -> None:
    """Print so many lines to stderr, and how many remain."""
    print_to_stderr(*lines[:max_lines])
    if len(lines) > max_lines:
        print_to_stderr(f"... and {len(lines) - max_lines} {remaining}")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = False) -> None:
    """Print a table to stdout; as wide as it needs to be where nobody's screen limits it."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else 200)
    grid = Table(box=SIMPLE_HEAD, pad_edge=False)
    for position, column in enumerate(columns):
        head = Text(without_control_characters(column))
        grid.add_column(head, justify="right" if position and numbers else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(without_control_characters(cell)) for cell in row))
    console.print(grid)


def print_json_or_table(content: Any, columns: Sequence[str], rows: Iterable[Sequence[str]], json: bool) -> None:
    """Print JSON where it was asked for, else a table."""
    if json:
        print_json(content)
    else:
        print_table(columns, rows)


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
        self.progress.update(self.task, advance=1, what=without_control_characters(what)[:40] + trouble)

    def show_judge_progress(self, count: int, total: int, cost: str) -> None:
        self.progress.update(self.task, what=f"asked {count} of {total} lists of questions, {cost}")

    def finish(self) -> None:
        self.progress.stop()


class ProgressLines:
    """Progress as plain lines, a few per minute, for logs and batch systems."""

    every = 10.0  # seconds

    def start(self, clips: int, cases: int, observed: int) -> None:
        from revisit.core.text import count_and_noun

        self.clips, self.done, self.started_at, self.printed_at = clips, observed, time.monotonic(), 0.0
        self.first = observed
        counts = f"{count_and_noun(cases, 'case')}, {count_and_noun(clips, 'clip')}"
        print_to_stderr(f"{counts}, {observed} already observed")
        self.waiting = threading.Timer(FIRST_WORD, self._print_waiting_line)
        self.waiting.daemon = True
        if observed < clips:
            self.waiting.start()

    def _print_waiting_line(self) -> None:
        """A word while the first clip takes its time, so that nobody takes the silence for a hang."""
        if self.done == self.first:
            print_to_stderr(
                f"first clip: {time.monotonic() - self.started_at:.0f} s so far; the time left is known once it is done"
            )

    def advance(self, what: str, failed: int) -> None:
        self.waiting.cancel()
        self.done += 1
        now = time.monotonic()
        if now - self.printed_at < self.every and self.done < self.clips:
            return
        self.printed_at = now
        seconds = (now - self.started_at) / max(self.done - self.first, 1) * (self.clips - self.done)
        left = f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
        remaining = f", about {left} left" if self.done < self.clips else ""
        done = min(self.done, self.clips)  # a reference that two workers decoded counts once
        print_to_stderr(f"observed {done} of {self.clips} clips{remaining}" + (f", {failed} failed" if failed else ""))

    def show_judge_progress(self, count: int, total: int, cost: str) -> None:
        now = time.monotonic()
        if now - self.printed_at >= self.every or count == total:
            self.printed_at = now
            print_to_stderr(f"asked {count} of {total} lists of questions, {cost}")

    def finish(self) -> None:
        self.waiting.cancel()


class Counter:
    """A running count of steps: one line that is written over on a terminal, a few lines elsewhere."""

    def __init__(self, label: str) -> None:
        self.label, self.printed_at = label, 0.0

    def __call__(self, count: int, total: int, what: str) -> None:
        now = time.monotonic()
        if sys.stderr.isatty():
            typer.echo(f"\r\x1b[K{self.label} {count} of {total}", err=True, nl=count == total)
        elif count == total or now - self.printed_at > 5:
            self.printed_at = now
            print_to_stderr(f"{self.label} {count} of {total}")


def make_progress_display(quiet: bool = False) -> Any:
    """A bar on a terminal, lines elsewhere, nothing if asked."""
    if quiet:
        return None
    return ProgressBar() if sys.stderr.isatty() else ProgressLines()


@contextmanager
def exit_on_interrupt(where: Path | None = None) -> Iterator[None]:
    """Ctrl-C ends what the same command continues, with a word about that."""
    try:
        yield
    except KeyboardInterrupt:
        print_to_stderr("interrupted; run the same command to continue" + (f" ({where})" if where else ""))
        raise typer.Exit(130) from None
