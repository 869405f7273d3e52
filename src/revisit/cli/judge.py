"""`revisit judge`: asks a judge about a clip, checks it, and replays its answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from revisit.cli import console
from revisit.cli.benchmarks import OpenGroup
from revisit.cli.help import Commands
from revisit.cli.judge_check import check_judge
from revisit.cli.options import JSON, flag_option, out_option

if TYPE_CHECKING:
    from revisit.judges.batch import JudgeClient
    from revisit.judges.protocol import Frames

app = Commands("Ask a vision-language model about clips, and check its answers.", cls=OpenGroup)
app.command("check")(check_judge)

JUDGE = typer.Option(..., "--judge", help="A judge file (YAML), the url of a server, or recorded answers.")
FRAMES = typer.Option(8, "--frames", min=1, help="Number of frames to show, evenly spread over the clip.")


@app.command("models")
def list_judge_models(judge: str = JUDGE, json: bool = JSON) -> None:
    """List the models of a server. This also tests the connection and the key."""
    from revisit.judges.chat import ChatJudge
    from revisit.judges.settings import judge_from_source

    server = judge_from_source(judge).judge
    model = server.facts.get("model")
    names = server.models() if isinstance(server, ChatJudge) else []
    if json:
        console.print_json({"judge": model, "models": list(names)})
    else:
        console.print_lines(*(f"{name}  <- the judge" if name == model else name for name in names))
    if isinstance(server, ChatJudge):
        server.check()
    else:
        console.print_to_stderr(f"this judge is {model}, which is not a server")


@app.command("ask")
def ask_judge(
    clip: Path = typer.Argument(help="A video, or a folder of frames."),
    question: str = typer.Argument(help="The question."),
    judge: str = JUDGE,
    form: str = typer.Option("yes-no", help="yes-no, a range such as 1-5, or words to choose from: red,green,blue."),
    frames: int = FRAMES,
    json: bool = flag_option("--json", "Print the answer as JSON, with the raw reply and its cost."),
) -> None:
    """Ask one question about one clip."""
    from revisit.judges.questions import Question, schema_from_form

    with open_judge_client(judge) as client:
        answer = client.ask(read_spread_frames(clip, frames), [Question("asked", question, schema_from_form(form))])[0]
    if json:
        console.print_json(answer.as_json())
    elif answer.status == "answered":
        value = {True: "yes", False: "no"}.get(answer.value, answer.value) if form == "yes-no" else answer.value
        sure = "" if answer.p_yes is None else f" (probability of yes {answer.p_yes:.3f})"
        console.print_lines(f"{value}{sure}")
    else:
        console.print_to_stderr(f"{answer.status}: {answer.reason}")
    raise typer.Exit(0 if answer.status == "answered" else 1)


@app.command("replay")
def replay_judge_run(
    run: Path = typer.Argument(help="A run that asked a judge."),
    out: Path = out_option("Run directory of the replay; <run>-replay by default."),
    json: bool = JSON,
) -> None:
    """Run an evaluation again with recorded answers. No network, no cost, the same numbers."""
    from dataclasses import replace

    from revisit.cli.running import write_report_and_print_summary
    from revisit.core import UsageError
    from revisit.engine.request import Request
    from revisit.results.run import Run

    earlier = Run(run)
    judge, facts = (run / "answers.jsonl").resolve(), earlier.facts["protocol"].get("judge") or {}
    if not judge.is_file():
        raise UsageError(f"{run}: this run asked no judge, so there are no answers to replay")
    folder = out or run.with_name(f"{run.name}-replay")
    if facts.get("roles"):
        folder.mkdir(parents=True, exist_ok=True)
        judge = _write_replay_judge_file(facts, judge, folder / "judge.yaml")
    replayed = replace(Request.of_run(earlier), judge=str(judge)).run(folder)
    raise typer.Exit(write_report_and_print_summary(replayed, report=False, show_all=True, json=json, quiet=True))


def _write_replay_judge_file(facts: Mapping[str, Any], answers: Path, out: Path) -> Path:
    """A judge file in which every role of a run is replayed from its recorded answers."""
    import yaml

    def replay_settings(judge: Mapping[str, Any]) -> dict[str, Any]:
        return {"kind": "replay", "path": str(answers), "model": judge.get("model", "")}

    roles = {role.removeprefix("judge."): replay_settings(judge) for role, judge in facts["roles"].items()}
    out.write_text(yaml.safe_dump({**replay_settings(facts), "roles": roles}), encoding="utf-8")
    return out.resolve()


def open_judge_client(judge: str) -> JudgeClient:
    """Somebody who asks the judge that --judge names, and keeps its answers in the cache."""
    from revisit.engine.cache import cache_root
    from revisit.judges.settings import judge_from_source
    from revisit.judges.store import AnswerStore, shared_answers_path

    selection = judge_from_source(judge)
    return selection.make_client(AnswerStore(shared_answers_path(cache_root(), selection.judge.facts)))


def read_spread_frames(clip: Path, count: int) -> Frames:
    """So many frames of a clip, evenly spread."""
    from revisit.engine.judging import read_judge_frames_of_clip

    return read_judge_frames_of_clip(clip, at_most=count)
