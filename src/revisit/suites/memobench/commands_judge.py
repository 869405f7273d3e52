"""`revisit judge questions`, `wording` and `review`: writes question banks for MemoBench with a judge."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from revisit.cli import console
from revisit.cli.judge import FRAMES, JUDGE, open_judge, sample_frames
from revisit.cli.options import JSON, out_option

ASKED_TWICE = 0.9  # likeness of two questions, by MiniLM


def questions(
    truth: Path = typer.Argument(help="The true clip, or MemoBench's dataset for all of its clips."),
    prompt: str = typer.Option("", help="The prompt of the clip; not needed for a dataset."),
    scene: str = typer.Option("", help="Scene of the clip, such as Barnyard, or Real; not needed for a dataset."),
    number: int = typer.Option(None, min=0, help="Number of the clip in its scene; not needed for a dataset."),
    failure: Path = typer.Option(
        None,
        help="A clip of the same prompt that fails; for a dataset, a folder of such clips with failure-cases.csv.",
    ),
    hint: str = typer.Option("", help="What is wrong with the failure clip."),
    metadata: Path = typer.Option(None, help="Folder of the dataset's metadata CSV files, if they are elsewhere."),
    judge: str = JUDGE,
    frames: int = FRAMES,
    wording: Path = typer.Option(None, help="YAML file with your own wording; `revisit judge wording` makes one."),
    out: Path = out_option("Folder for the banks and the sheets for review.", Path("questions")),
    limit: int = typer.Option(None, min=1, help="At most this many clips of a dataset."),
    fresh: bool = typer.Option(False, "--fresh", help="Write existing banks again."),
    json: bool = JSON,
) -> None:
    """Write and filter MemoBench questions with a judge.

    Makes a question bank and a sheet for human review per clip. With a dataset, the same command resumes.
    """
    from revisit.core import Clip, RevisitError, UsageError
    from revisit.suites.memobench.ground_truth import MemoBenchDataset, dataset_root
    from revisit.suites.memobench.names import parse_clip
    from revisit.suites.memobench.question_pipeline import BankTask, bank_tasks
    from revisit.suites.memobench.read import metadata_of
    from revisit.suites.memobench.wording import read_wording

    words = {} if wording is None else read_wording(wording)
    root = dataset_root(truth) if truth.is_dir() else None
    if root is not None:
        if prompt or scene or number is not None or hint:
            raise UsageError(
                f"{truth} is a dataset, which has prompts, scenes and numbers; leave out --prompt, --scene and --number"
            )
        folders = [] if metadata is None else [metadata]
        tasks, left_out = bank_tasks(MemoBenchDataset(root), metadata_of(root, *folders), failure)
        for line in left_out:
            console.message(line)
        todo = [task for task in tasks if fresh or not (out / task.file).is_file()][:limit]
        console.message(f"{len(tasks)} clips, {len(tasks) - len(todo)} of them done or left for later")
    else:
        if not prompt or not scene or number is None:
            raise UsageError("a single clip needs --prompt, --scene and --number; or give the folder of the dataset")
        if (failure is None) != (not hint):
            raise UsageError(
                "--failure and --hint must be given together: the hint says what is wrong with the failure clip"
            )
        name = parse_clip(f"{number}" if scene.lower() == "real" else f"{scene}_{number}")
        assert name is not None
        todo = [BankTask(name, Clip(truth), prompt, failure, hint)]
    failed = 0
    with open_judge(judge) as asker:
        for task in todo:
            try:
                _write_bank(asker, task, frames, out, words)
            except RevisitError as error:
                if root is None:
                    raise
                failed += 1
                console.message(f"{task.name.title}: {error}")
    if json:
        console.print_json({"folder": str(out), "clips": [task.name.title for task in todo], "failed": failed})
    if root is not None:
        console.message(f"{len(todo) - failed} banks written; score with --option questions={out}")
    raise typer.Exit(1 if failed else 0)


def _write_bank(asker: Any, task: Any, frames: int, out: Path, words: Mapping[str, str]) -> None:
    """Make the bank of one clip, and say what became of its questions."""
    from revisit.suites.memobench.question_bank import thin_dimensions, write_bank
    from revisit.suites.memobench.question_pipeline import make_bank, review_sheet

    failure = None if task.failure is None else sample_frames(task.failure, frames)
    path = task.truth.path
    bank = make_bank(asker, task, sample_frames(path, 1), sample_frames(path, frames), failure, words)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{bank.key}-questions.csv").write_bytes(write_bank(bank).encode())
    (out / f"{bank.key}-review.csv").write_bytes(review_sheet(bank).encode())
    console.message(
        f"{len(bank.start)} questions written, {len(bank.final)} left; "
        f"fill in {out / f'{bank.key}-review.csv'}, then: revisit judge review {out / f'{bank.key}-questions.csv'}"
    )
    if failure is None:
        console.message(f"{bank.key}: no failure clip was given: the questions were filtered on the true clip only")
    for name, count in thin_dimensions(bank.final).items():
        console.message(f"{bank.key}: {name} has only {count} questions left")
    for sentence in _near_duplicates({one.id: one.text for one in bank.final}):
        console.message(f"{bank.key}: {sentence}")


def _near_duplicates(texts: Mapping[int, str]) -> list[str]:
    """A sentence for each pair of questions that ask about the same; none where MiniLM is not at hand.

    Of the 12420 pairs within the published banks three are above the limit; each asks one thing and its contrary.
    """
    from revisit import weights

    if weights.why_missing(("minilm",)) is not None:
        return []
    from revisit.networks.minilm import near_duplicates

    ids = list(texts)
    pairs = near_duplicates(list(texts.values()), ASKED_TWICE)
    return [
        f"questions {ids[a]} and {ids[b]} ask nearly the same (similarity {likeness:.2f}); keep one of them"
        for a, b, likeness in pairs
    ]


def wording(
    repository: Path = typer.Argument(help="Your copy of MemoBench's repository."),
    out: Path = out_option("The file to write.", Path("memobench-wording.yaml")),
    json: bool = JSON,
) -> None:
    """Extract the wording of MemoBench's questions from its repository."""
    from revisit.core import UsageError
    from revisit.suites.memobench.wording import as_yaml, from_repository

    if out.exists():
        raise UsageError(f"{out} already exists; choose another file with --out")
    out.write_text(as_yaml(from_repository(repository)), encoding="utf-8")
    if json:
        console.print_json({"file": str(out)})
    console.message(f"{out}: pass it with --option wording={out} to eval, or --wording {out} to judge questions")


def review(
    bank: Path = typer.Argument(
        help="A file of questions, *-questions.csv, with its *-review.csv beside it; a folder of them with --reviews."
    ),
    reviews: Path = typer.Option(None, help="What raters of `revisit annotate --task review` said: reviews.json."),
    out: Path = out_option("Folder for the reviewed banks, with --reviews."),
    json: bool = JSON,
) -> None:
    """Keep the questions of a bank that people approved. In its sheet, or those that most raters keep."""
    from dataclasses import replace

    from revisit.core import UsageError
    from revisit.suites.memobench.question_bank import read_bank, review_filter, write_bank, write_reviewed_banks
    from revisit.suites.memobench.question_pipeline import read_reviews

    if reviews is not None:
        if out is None:
            raise UsageError("say with --out where the reviewed banks go")
        lines = write_reviewed_banks(bank, reviews, out)
        for line in lines:
            console.message(line)
        if json:
            console.print_json({"folder": str(out), "banks": list(lines)})
        return
    sheet = bank.with_name(bank.name.replace("-questions.csv", "-review.csv"))
    if sheet == bank or not sheet.is_file():
        raise UsageError(f"{sheet}: no such review sheet; `revisit judge questions` writes it beside the bank")
    questions = read_bank(bank)
    final = review_filter(questions.final, read_reviews(sheet.read_text(encoding="utf-8-sig")))
    bank.write_bytes(write_bank(replace(questions, final=final)).encode())
    if json:
        console.print_json({"file": str(bank), "approved": len(final), "questions": len(questions.final)})
    console.message(f"{len(final)} of {len(questions.final)} questions were approved")
