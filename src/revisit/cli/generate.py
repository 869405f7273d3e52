"""`revisit generate`: makes the clips of a suite's dataset with your own generator, in the layout the suite reads."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from revisit.cli import console


def generate(
    suite: str = typer.Argument(help="The benchmark: mind, memobench, mbench, wrbench, or folder (a manifest)."),
    data: Path = typer.Option(
        None, help="The dataset. For wrbench the prompts or a records.jsonl; the built-in scenes by default."
    ),
    model: str = typer.Option("", help="Name of your model in tables; the baseline's name by default."),
    command: str = typer.Option(
        "", help="Run this for every clip: 'python gen.py --prompt {prompt} --image {image} --out {out}'."
    ),
    serve: str = typer.Option(
        "", help="Start this once per worker; it gets a job per line on stdin and answers on stdout."
    ),
    baseline: str = typer.Option("", help="A generator without a network: pan, hold, repeat or world."),
    out: Path = typer.Option(None, help="Folder for the clips; generated/SUITE, or for mbench the dataset itself."),
    generator: str = typer.Option("", help="The generator from `revisit camera models` whose camera format is used."),
    frames: int = typer.Option(
        None, min=2, help="Frames per clip; by default as in the dataset or the generator's card."
    ),
    size: list[str] = typer.Option([], help="Width x height, such as 832x480; several make a condition of each."),
    fps: float = typer.Option(None, help="Frames per second."),
    seed: int = typer.Option(0, help="Seed of all jobs."),
    first_frame: bool = typer.Option(True, "--first-frame/--no-first-frame", help="Whether jobs have a first frame."),
    only: list[str] = typer.Option(
        [], help="Only these subsets, conditions or samples (repeatable, or separated by commas)."
    ),
    limit: int = typer.Option(None, min=1, help="At most this many clips, spread over subsets and conditions."),
    option: list[str] = typer.Option([], help="An option of the suite's jobs, name=value (repeatable)."),
    workers: int = typer.Option(0, min=0, help="Workers; one, or one for each GPU by default."),
    gpus: str = typer.Option("", help="GPUs by number, such as 0,1,2, shared out among the workers."),
    timeout: float = typer.Option(3600, help="Seconds after which a clip is given up."),
    load_timeout: float = typer.Option(3600, help="Further seconds for a process of --serve to load its weights."),
    retries: int = typer.Option(1, min=0, help="Retries of a clip that crashed, hung or came out wrong."),
    replace: bool = typer.Option(False, "--replace", help="Make clips again that were made from other inputs."),
    checkpoint: str = typer.Option("", help="Name of the weights, for the record."),
    price: float = typer.Option(None, min=0, help="What a clip costs, for the model's card and the tables."),
    currency: str = typer.Option("USD", help="Of the price."),
    own: Path = typer.Option(None, "--generators", help="A YAML file with your own generators."),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Print the plan and the disk space it needs, without making clips."
    ),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Make the clips of a benchmark's dataset with your generator. The same command resumes."""
    from collections import Counter

    from revisit.control.generation import (
        By,
        batch_of,
        carry_out,
        conditions,
        cost_of,
        disk_free,
        how_of,
        plan_rows,
        with_ceilings,
    )
    from revisit.control.generators import generator as card
    from revisit.control.job_runner import Generated
    from revisit.core import UsageError
    from revisit.core.text import parts
    from revisit.worlds.on_demand import world

    if not model and not baseline:
        raise UsageError("give --model, the name of your model in tables and folders")
    by = By(command, serve, baseline, None, workers, parts([gpus]), load_timeout)
    if not dry_run:
        by.makers({"world": world})
    to = card(generator, own) if generator else None
    how = how_of(
        by, timeout=timeout, retries=retries, replace="any" if replace else "", to=to, checkpoint=checkpoint,
        price=price, currency=currency,
    )  # fmt: skip
    batches = [
        batch_of(suite, data, out, wanted)
        for wanted in conditions(
            model or baseline, parts(size), first_frame, to=to, frames=frames, fps=fps, seed=seed,
            only=tuple(parts(only)), limit=limit, options=options_of(option),
        )
    ]  # fmt: skip
    ended: list[Generated] = []
    work = with_ceilings(batches, by, how)
    total = sum(len(batch.jobs) for batch, _, _ in work)
    for batch, maker, way in work:
        for sentence in dict.fromkeys(batch.left_out):
            console.message(f"left out: {sentence}")
        rows = plan_rows(batch.jobs)
        need, free = sum(row["bytes"] for row in rows), disk_free(batch.home)
        if dry_run:
            _show_plan(batch.home, rows, need, free, json)
            continue
        if need > free:
            raise UsageError(
                f"the clips need about {need / 1e9:.1f} GB, but only {free / 1e9:.1f} GB are free in {batch.home}; "
                "free some space, or choose another --out"
            )
        for made in carry_out(batch, maker, way, {"world": world}):
            ended.append(made)
            console.message(
                f"{len(ended)}/{total} {made.id}: {made.status}{': ' if made.reason else ''}{made.reason}"
                + (f" (tried {made.tries} times)" if made.tries > 1 else "")
            )
    if dry_run:
        return
    for remark, count in Counter(remark for made in ended for remark in made.remarks).items():
        console.message(f"{count} of {total}: {remark}")
    for batch in batches if not baseline else ():
        console.message(_cost_line(cost_of(batch, how)))
    counts = dict(sorted(Counter(made.status for made in ended).items()))
    score = dict.fromkeys(shlex.join(["revisit", "eval", *batch.evaluate]) for batch in batches)
    if json:
        console.data({"counts": counts, "evaluate": list(score), "jobs": [made.__dict__ for made in ended]})
    else:
        typer.echo(", ".join(f"{count} {status}" for status, count in counts.items()))
        for line in score:
            typer.echo(line)
    raise typer.Exit(0 if all(made.good for made in ended) else 1)


def _cost_line(cost: dict[str, Any]) -> str:
    """What clips cost, as a line."""
    if not cost:
        return "no clip was made, so nothing is known of the cost"
    loading = ", with loading" if cost.get("with_loading") else ""
    parts = [f"{cost['seconds_per_clip']:.4g} s per clip over {cost['clips']} clips{loading}"]
    parts += [f"peak memory {cost['peak_memory_gb']:.3g} GB"] if "peak_memory_gb" in cost else []
    parts += [f"peak GPU memory {cost['peak_gpu_memory_gb']:.3g} GB"] if "peak_gpu_memory_gb" in cost else []
    parts += [f"{cost['price_per_clip']:.4g} {cost['currency']} per clip"] if "price_per_clip" in cost else []
    return f"cost: {'; '.join(parts)} ({cost['machine']})"


def options_of(given: list[str]) -> dict[str, str]:
    """Options of the suite's jobs by name."""
    from revisit.core import UsageError

    wrong = next((text for text in given if "=" not in text), None)
    if wrong is not None:
        raise UsageError(f"--option {wrong}: expected name=value")
    return dict(text.split("=", 1) for text in given)


def _show_plan(home: Path, rows: Sequence[Mapping[str, Any]], need: int, free: int, json: bool) -> None:
    if json:
        console.data({"home": str(home), "plan": rows, "bytes": need, "free": free})
        return
    typer.echo(f"{home}")
    columns = ["subset", "condition", "jobs", "there", "frames", "fps", "size", "seconds"]
    console.table(columns, [[str(row[name]) for name in columns] for row in rows])
    jobs, there = (sum(row[name] for row in rows) for name in ("jobs", "there"))
    typer.echo(f"{jobs} clips, {there} already made; about {need / 1e6:.1f} MB to come, {free / 1e9:.1f} GB free")
