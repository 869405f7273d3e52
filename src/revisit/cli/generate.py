"""`revisit generate`: clips of a suite's dataset by your own generator, laid out as the suite's reader expects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from revisit.cli import console


def generate(
    suite: str = typer.Argument(help="The benchmark: mind, memobench, mbench, wrbench, or folder (a manifest)."),
    data: Path = typer.Option(None, help="The dataset. Of wrbench the prompts, a records.jsonl, or none: our scenes."),
    model: str = typer.Option("", help="What your model is called in tables; the baseline's name by default."),
    command: str = typer.Option(
        "", help="Run this for every clip: 'python gen.py --prompt {prompt} --image {image} --out {out}'."
    ),
    serve: str = typer.Option(
        "", help="Start this once per worker; it gets a job per line on stdin and answers on stdout."
    ),
    baseline: str = typer.Option("", help="A generator without a network: pan, hold, repeat or world."),
    out: Path = typer.Option(None, help="Folder for the clips; generated/SUITE, or for mbench the dataset itself."),
    generator: str = typer.Option("", help="The card of `revisit camera models` in whose dialect control is told."),
    frames: int = typer.Option(None, min=2, help="Frames of a clip; as the dataset or the card says by default."),
    size: list[str] = typer.Option([], help="Width x height, such as 832x480; several make a condition of each."),
    fps: float = typer.Option(None, help="Frames a second."),
    seed: int = typer.Option(0, help="Seed of all jobs."),
    first_frame: bool = typer.Option(True, "--first-frame/--no-first-frame", help="Whether jobs name a first frame."),
    only: list[str] = typer.Option([], help="Only these subsets, conditions or samples; repeat it, or use commas."),
    limit: int = typer.Option(None, min=1, help="At most so many clips, spread over subsets and conditions."),
    option: list[str] = typer.Option([], help="An option of the suite's jobs, name=value; repeat it."),
    workers: int = typer.Option(0, min=0, help="Workers; one, or one for each GPU by default."),
    gpus: str = typer.Option("", help="GPUs by number, such as 0,1,2: workers take turns with them."),
    timeout: float = typer.Option(3600, help="Seconds after which a clip counts as hung."),
    load_timeout: float = typer.Option(3600, help="Further seconds for a process of --serve to load its weights."),
    retries: int = typer.Option(1, min=0, help="Further tries of a clip that crashed, hung or came out wrong."),
    replace: bool = typer.Option(False, "--replace", help="Make clips anew that were made from other inputs."),
    checkpoint: str = typer.Option("", help="Name of the weights, for the provenance."),
    own: Path = typer.Option(None, "--generators", help="A YAML file with generators of your own."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Print the plan and the disk it needs; make nothing."),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Make the clips of a benchmark's dataset with your generator. The same command resumes."""
    from collections import Counter

    from revisit.control.generation import (
        By,
        batch_of,
        carry_out,
        conditions,
        disk_free,
        eval_command,
        how_of,
        plan_rows,
    )
    from revisit.control.generators import generator as card
    from revisit.control.running import Generated
    from revisit.core import UsageError
    from revisit.worlds.on_demand import world

    if not model and not baseline:
        raise UsageError("--model says what your model is called in tables and folders")
    by = By(command, serve, baseline, None, workers, parts([gpus]), load_timeout)
    if not dry_run:
        by.makers({"world": world})
    to = card(generator, own) if generator else None
    how = how_of(
        by, timeout=timeout, retries=retries, replace="any" if replace else "", to=to, checkpoint=checkpoint
    )  # fmt: skip
    batches = [
        batch_of(suite, data, out, wanted)
        for wanted in conditions(
            model or baseline, parts(size), first_frame, to=to, frames=frames, fps=fps, seed=seed,
            only=tuple(parts(only)), limit=limit, options=options_of(option),
        )
    ]  # fmt: skip
    ended: list[Generated] = []
    total = sum(len(batch.jobs) for batch in batches)
    for batch in batches:
        for sentence in dict.fromkeys(batch.left_out):
            console.message(f"left out: {sentence}")
        rows = plan_rows(batch.jobs)
        need, free = sum(row["bytes"] for row in rows), disk_free(batch.home)
        if dry_run:
            _show_plan(batch.home, rows, need, free, json)
            continue
        if need > free:
            raise UsageError(
                f"the clips need about {need / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free in {batch.home}; "
                "make room, or choose another --out"
            )
        for made in carry_out(batch, by, how, {"world": world}):
            ended.append(made)
            console.message(
                f"{len(ended)}/{total} {made.id}: {made.status}{': ' if made.reason else ''}{made.reason}"
                + (f" (tried {made.tries} times)" if made.tries > 1 else "")
            )
    if dry_run:
        return
    for remark, count in Counter(remark for made in ended for remark in made.remarks).items():
        console.message(f"{count} of {total}: {remark}")
    counts = dict(sorted(Counter(made.status for made in ended).items()))
    score = dict.fromkeys(eval_command(batch) for batch in batches)
    if json:
        console.data({"counts": counts, "evaluate": list(score), "jobs": [made.__dict__ for made in ended]})
    else:
        typer.echo(", ".join(f"{count} {status}" for status, count in counts.items()))
        for line in score:
            typer.echo(line)
    raise typer.Exit(0 if all(made.good for made in ended) else 1)


def options_of(given: list[str]) -> dict[str, str]:
    """Options of the suite's jobs by name."""
    from revisit.core import UsageError

    wrong = next((text for text in given if "=" not in text), None)
    if wrong is not None:
        raise UsageError(f"--option {wrong}: expected name=value")
    return dict(text.split("=", 1) for text in given)


def parts(values: list[str]) -> list[str]:
    """What was given several times, or with commas between."""
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def _show_plan(home: Path, rows: list[dict[str, Any]], need: int, free: int, json: bool) -> None:
    if json:
        console.data({"home": str(home), "plan": rows, "bytes": need, "free": free})
        return
    typer.echo(f"{home}")
    columns = ["subset", "condition", "jobs", "there", "frames", "fps", "size", "seconds"]
    console.table(columns, [[str(row[name]) for name in columns] for row in rows])
    jobs, there = (sum(row[name] for row in rows) for name in ("jobs", "there"))
    typer.echo(f"{jobs} clips, {there} of them there; about {need / 1e6:.1f} MB to come, {free / 1e9:.1f} GB free")
