"""`revisit judge`: ask a judge by hand, write questions with it, and replay what it said."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from revisit.cli import console
from revisit.cli.judge_check import check

if TYPE_CHECKING:
    from revisit.judges.asking import Frames
    from revisit.judges.settings import ChosenJudge

app = typer.Typer(help="Ask a vision-language model about clips, and trust its answers.", no_args_is_help=True)
app.command("check")(check)

JUDGE = typer.Option(..., "--judge", help="A judge file (YAML), the url of a server, or recorded answers.")
FRAMES = typer.Option(8, "--frames", min=1, help="How many frames of a clip are shown, evenly spread.")
ASKED_TWICE = 0.9  # likeness of two questions, by MiniLM


@app.command("models")
def models(judge: str = JUDGE) -> None:
    """List the models of a server: does it answer, and is the key right?"""
    from revisit.judges.chat import ChatJudge

    chosen = _chosen(judge).judge
    if not isinstance(chosen, ChatJudge):
        console.message(f"this judge is {chosen.facts.get('model')}; there is no server to ask")
        return
    for name in chosen.models():
        typer.echo(console.clean(name) + ("  <- the judge" if name == chosen.settings.model else ""))
    chosen.check()


@app.command("ask")
def ask(
    clip: Path = typer.Argument(help="A video, or a folder of frames."),
    question: str = typer.Argument(help="The question."),
    judge: str = JUDGE,
    form: str = typer.Option("yes-no", help="yes-no, a range such as 1-5, or words to choose from: red,green,blue."),
    frames: int = FRAMES,
    json: bool = typer.Option(False, "--json", help="Print the answer as JSON, with the raw reply and what it cost."),
) -> None:
    """Ask one question about one clip."""
    from revisit.judges.labels import schema_of
    from revisit.judges.questions import Question

    chosen = _chosen(judge)
    with chosen.asker(_store(chosen)) as asker:
        answer = asker.ask(_look(clip, frames), [Question("asked", question, schema_of(form))])[0]
    if json:
        console.data(answer.as_json())
    elif answer.status == "answered":
        value = {True: "yes", False: "no"}.get(answer.value, answer.value) if form == "yes-no" else answer.value
        sure = "" if answer.p_yes is None else f" (probability of yes {answer.p_yes:.3f})"
        typer.echo(console.clean(f"{value}{sure}"))
    else:
        console.message(f"{answer.status}: {answer.reason}")
    raise typer.Exit(0 if answer.status == "answered" else 1)


@app.command("questions")
def questions(
    truth: Path = typer.Argument(help="The true clip, or MemoBench's dataset: then every clip of it."),
    prompt: str = typer.Option("", help="The prompt that clips are made from; a dataset has them."),
    scene: str = typer.Option("", help="Scene of the clip, such as Barnyard, or Real; a dataset has them."),
    number: int = typer.Option(None, min=0, help="Number of the clip in its scene; a dataset has them."),
    failure: Path = typer.Option(
        None,
        help="A clip of the same prompt that is known to fail; of a dataset a folder of them with failure-cases.csv.",
    ),
    hint: str = typer.Option("", help="What is wrong with the failure clip."),
    metadata: Path = typer.Option(None, help="Folder of the dataset's metadata CSV files, if they lie elsewhere."),
    judge: str = JUDGE,
    frames: int = FRAMES,
    wording: Path = typer.Option(None, help="YAML file with words of your own; `revisit judge wording` makes one."),
    out: Path = typer.Option(Path("questions"), help="Folder for the banks and the sheets for review."),
    limit: int = typer.Option(None, min=1, help="Of a dataset, at most so many clips."),
    fresh: bool = typer.Option(False, "--fresh", help="Write again what is there."),
) -> None:
    """Write and filter MemoBench questions; a bank and a sheet for human review per clip come out.

    With a dataset, banks that are there are kept: the same command goes on where it stopped.
    """
    from revisit.core import Clip, RevisitError, UsageError
    from revisit.suites.memobench.names import parse_clip
    from revisit.suites.memobench.pipeline import BankTask, bank_tasks
    from revisit.suites.memobench.read import metadata_of
    from revisit.suites.memobench.truth import Dataset, dataset_root
    from revisit.suites.memobench.wording import read_wording

    words = None if wording is None else read_wording(wording)
    root = dataset_root(truth) if truth.is_dir() else None
    if root is not None:
        if prompt or scene or number is not None or hint:
            raise UsageError(f"{truth} is a dataset, which has prompts, scenes and numbers; leave these options out")
        tasks, left_out = bank_tasks(
            Dataset(root), metadata_of(root, *([metadata] if metadata is not None else [])), failure
        )
        for line in left_out:
            console.message(line)
        todo = [task for task in tasks if fresh or not (out / task.file).is_file()][:limit]
        console.message(f"{len(tasks)} clips, {len(tasks) - len(todo)} of them later or done")
    else:
        if not prompt or not scene or number is None:
            raise UsageError("a single clip needs --prompt, --scene and --number; or give the folder of the dataset")
        if (failure is None) != (not hint):
            raise UsageError("--failure and --hint go together: the hint says what is wrong with the failure clip")
        name = parse_clip(f"{number}" if scene.lower() == "real" else f"{scene}_{number}")
        assert name is not None
        todo = [BankTask(name, Clip(truth), prompt, failure, hint)]
    chosen = _chosen(judge)
    failed = 0
    with chosen.asker(_store(chosen)) as asker:
        for task in todo:
            try:
                _write_bank(asker, task, frames, out, words)
            except RevisitError as error:
                if root is None:
                    raise
                failed += 1
                console.message(f"{task.name.title}: {error}")
    if root is not None:
        console.message(f"{len(todo) - failed} banks written; score with --option questions={out}")
    raise typer.Exit(1 if failed else 0)


def _write_bank(asker: Any, task: Any, frames: int, out: Path, words: Mapping[str, str] | None) -> None:
    """Make the bank of one clip, and say what became of its questions."""
    from revisit.suites.memobench.pipeline import Shown, make_bank, review_sheet
    from revisit.suites.memobench.questions import thin_dimensions, write_bank

    failure = None if task.failure is None else _look(task.failure, frames)
    path = task.truth.path
    shown = Shown(_look(path, 1), _look(path, frames), failure, task.hint)
    bank = make_bank(asker, task.scene, task.name.number, task.prompt, shown, wording=words)
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
    for sentence in _asked_twice({one.id: one.text for one in bank.final}):
        console.message(f"{bank.key}: {sentence}")


def _asked_twice(texts: Mapping[int, str]) -> list[str]:
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
        f"questions {ids[a]} and {ids[b]} ask nearly the same (likeness {likeness:.2f}); keep one of them"
        for a, b, likeness in pairs
    ]


@app.command("wording")
def wording(
    repository: Path = typer.Argument(help="Your own copy of MemoBench's repository."),
    out: Path = typer.Option(Path("memobench-wording.yaml"), help="The file to write."),
) -> None:
    """Take the words of MemoBench's questions to a judge out of your copy of its repository."""
    from revisit.core import UsageError
    from revisit.suites.memobench.wording import as_yaml, from_repository

    if out.exists():
        raise UsageError(f"{out} is there already; name another file with --out")
    out.write_text(as_yaml(from_repository(repository)), encoding="utf-8")
    console.message(f"{out}: pass it with --option wording={out} to eval, or --wording {out} to judge questions")


@app.command("review")
def review(
    bank: Path = typer.Argument(help="A file of questions, *-questions.csv; its *-review.csv lies beside it."),
) -> None:
    """Keep the questions of a bank that a person approved in its sheet."""
    from dataclasses import replace

    from revisit.core import UsageError
    from revisit.suites.memobench.pipeline import read_reviews
    from revisit.suites.memobench.questions import read_bank, review_filter, write_bank

    sheet = bank.with_name(bank.name.replace("-questions.csv", "-review.csv"))
    if sheet == bank or not sheet.is_file():
        raise UsageError(f"{sheet}: no such sheet; `revisit judge questions` writes it beside the bank")
    made = read_bank(bank)
    final = review_filter(made.final, read_reviews(sheet.read_text(encoding="utf-8-sig")))
    bank.write_bytes(write_bank(replace(made, final=final)).encode())
    console.message(f"{len(final)} of {len(made.final)} questions were approved")


@app.command("replay")
def replay(
    run: Path = typer.Argument(help="A run that asked a judge."),
    out: Path = typer.Option(None, help="Run directory of the replay; <run>-replay by default."),
    json: bool = typer.Option(False, "--json", help="Print the summary as JSON."),
) -> None:
    """Run an evaluation again with the answers that were recorded: no network, no cost, the same numbers."""
    from dataclasses import replace

    from revisit.engine.request import Request
    from revisit.results.run import Run

    recorded, facts = run / "answers.jsonl", Run(run).facts
    folder = out or run.with_name(f"{run.name}-replay")
    judge = recorded.resolve()
    if (facts["protocol"].get("judge") or {}).get("roles"):
        folder.mkdir(parents=True, exist_ok=True)
        judge = _replayed_roles(facts["protocol"]["judge"], judge, folder / "judge.yaml")
    request = replace(Request.from_json(facts["request"]), judge=str(judge))
    done = request.run(folder)
    if json:
        console.data(done.summary)
    else:
        console.summary(done.summary)
    raise typer.Exit(done.exit_code)


def _replayed_roles(facts: Mapping[str, Any], answers: Path, out: Path) -> Path:
    """A judge file in which every role of a run is replayed from its recorded answers."""
    import yaml

    def one(judge: Mapping[str, Any]) -> dict[str, Any]:
        return {"kind": "replay", "path": str(answers), "model": judge.get("model", "")}

    roles = {id.removeprefix("judge."): one(judge) for id, judge in facts["roles"].items()}
    out.write_text(yaml.safe_dump({**one(facts), "roles": roles}), encoding="utf-8")
    return out.resolve()


def _chosen(judge: str) -> ChosenJudge:
    from revisit.judges.settings import choose_judge

    return choose_judge(judge)


def _store(chosen: ChosenJudge) -> Any:
    from revisit.engine.cache import cache_root
    from revisit.judges.store import AnswerStore, shared_store

    return AnswerStore(shared_store(cache_root(), chosen.judge.facts))


def _look(clip: Path, frames: int) -> Frames:
    from revisit.engine.asking import look

    return look(clip, at_most=frames)
