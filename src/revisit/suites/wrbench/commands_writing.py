"""`revisit build first-frames`, `scenes` and `prompts`: what text-to-image and language models behind servers write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from revisit.cli import console
from revisit.cli.options import JSON, out_option

if TYPE_CHECKING:
    from revisit.judges.batch import JudgeClient
    from revisit.servers.image_batch import ImageResult

IMAGES = typer.Option(
    "", "--images", help="A text-to-image server: a YAML file with url and model, or a drawings.jsonl to repeat."
)
SIZE = typer.Option("", "--size", help="Width x height to ask for; that of the settings by default, or 1294x712.")
WRITER = typer.Option(
    ..., "--writer", help="A language model: a judge file (YAML), the url of a server, or recorded answers."
)


def build_first_frames(
    source: Path = typer.Argument(
        None,
        help="Scenes (YAML), a folder with families.jsonl, or JSON lines of id and prompt; our own 25 scenes else.",
    ),
    images: str = typer.Option(..., "--images", help=IMAGES.help),
    out: Path = out_option("Folder for the pictures, <id>.png, and for drawings.jsonl.", required=True),
    size: str = SIZE,
    each: int = typer.Option(1, min=1, max=16, help="Pictures of every prompt: <id>.png, <id>-2.png and so on."),
    only: list[str] = typer.Option([], help="Only these ids (repeatable, or separated by commas)."),
    limit: int = typer.Option(None, min=1, help="At most this many prompts."),
    replace: bool = typer.Option(False, "--replace", help="Draw pictures again that were drawn from something else."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Print what would be drawn and what it costs."),
    json: bool = JSON,
) -> None:
    """Draw first frames of scenes or records with a text-to-image server. The same command resumes."""
    from revisit.core import UsageError
    from revisit.core.text import split_commas

    prompts = image_prompts_by_name(source)
    ids = split_commas(only)
    unknown = [name for name in ids if name not in prompts]
    if unknown:
        raise UsageError(f"--only {unknown[0]}: there is no prompt of that id")
    selection = {id: text for id, text in prompts.items() if not ids or id in ids}
    selection = dict(list(selection.items())[:limit])
    if dry_run:
        _print_drawing_plan(images, selection, out, size, each, json)
        return
    ended = draw_pictures(images, selection, out, size, each=each, replace=replace)
    counts = {status: sum(one.status == status for one in ended) for status in dict.fromkeys(o.status for o in ended)}
    if json:
        pictures = [{**vars(one), "file": str(one.file or "")} for one in ended]
        console.print_json({"counts": counts, "folder": str(out), "pictures": pictures})
    else:
        typer.echo(", ".join(f"{count} {status}" for status, count in counts.items()))
        typer.echo(f"revisit generate wrbench --option first_frames={out}")
    raise typer.Exit(0 if all(one.has_picture for one in ended) else 1)


def build_scenes(
    out: Path = out_option("The YAML file; the answers are kept beside it, in <name>.answers.jsonl.", required=True),
    writer: str = WRITER,
    count: int = typer.Option(25, min=1, max=1000, help="Number of scenes."),
    about: str = typer.Option("", help="What the scenes shall be about, in a few words."),
    json: bool = JSON,
) -> None:
    """Let a language model write scenes with four events each. What gives away the end is asked for again."""
    from revisit.suites.wrbench.generated_text import generate_scenes, write_or_extend_scenes_file

    with _open_writer_client(writer, out) as client:
        families, trouble = generate_scenes(client, count, about)
        if families:
            write_or_extend_scenes_file(out, families)
    _print_written_and_exit(out, len(families), "scenes", trouble, client, json)


def build_prompts(
    source: Path = typer.Argument(help="YAML with families of scenes."),
    out: Path = out_option("The YAML file; the answers are kept beside it, in <name>.answers.jsonl.", required=True),
    writer: str = WRITER,
    json: bool = JSON,
) -> None:
    """Let a language model write the prompts of scenes. One for the first picture, and one for each event."""
    from revisit.suites.wrbench.build import read_scene_families
    from revisit.suites.wrbench.generated_text import generate_scene_prompts, write_or_extend_scenes_file

    families = read_scene_families(source)
    with _open_writer_client(writer, out) as client:
        prompts_by_scene, trouble = generate_scene_prompts(client, families)
        complete = {name: facts for name, facts in prompts_by_scene.items() if "picture" in facts}
        if complete:
            write_or_extend_scenes_file(out, complete)
    _print_written_and_exit(out, len(complete), "scenes with prompts", trouble, client, json)


def image_prompts_by_name(source: Path | None) -> dict[str, str]:
    """What a text-to-image model is told, by the name of the picture; of our own scenes where nothing is named."""
    from revisit.control.jobs import is_folder_name
    from revisit.core import UsageError
    from revisit.suites.wrbench.build import first_frame_prompt, read_scene_families
    from revisit.suites.wrbench.prompts import own_scene_families, read_json_lines_with_keys

    if source is not None and source.is_dir():
        rows = read_json_lines_with_keys(source / "families.jsonl", "family_id", "t2i_scene")
        texts = {row["family_id"]: str(row["t2i_scene"]) for row in rows}
    elif source is not None and source.suffix == ".jsonl":
        rows = read_json_lines_with_keys(source, "id")
        without = next((row["id"] for row in rows if not (row.get("image_prompt") or row.get("prompt"))), None)
        if without is not None:
            raise UsageError(f"{source}: {without!r} has neither image_prompt nor prompt")
        texts = {str(row["id"]): str(row.get("image_prompt") or row["prompt"]) for row in rows}
    else:
        families = own_scene_families() if source is None else read_scene_families(source)
        texts = {name: first_frame_prompt(facts) for name, facts in families.items()}
    wrong = next((name for name in texts if not is_folder_name(name)), None)
    if wrong is not None:
        raise UsageError(f"{source}: {wrong!r} cannot be the name of a picture; use letters, digits, _, ., @ and -")
    if not texts:
        raise UsageError(f"{source}: there is no prompt in it")
    return texts


def draw_pictures(
    images: str, prompts: Mapping[str, str], folder: Path, size: str = "", *, each: int = 1, replace: bool = False
) -> list[ImageResult]:
    """Draw pictures with the server that --images names, and say what became of each."""
    from contextlib import closing

    from revisit.media.cache_folders import cache_root
    from revisit.servers.image_batch import ImageStore, Spending, draw_missing_pictures

    backend, requests = _image_backend_and_requests(images, prompts, size, each)
    store = ImageStore(folder, cache_root())
    spending = Spending(backend.settings.budget, backend.settings.price)
    ended = []
    with closing(backend):
        for one in draw_missing_pictures(requests, backend, store, replace=replace, spending=spending):
            ended.append(one)
            remark = one.reason or one.remark
            console.print_to_stderr(
                f"{len(ended)}/{len(requests)} {one.id}: {one.status}{': ' if remark else ''}{remark}"
            )
    if spending.pictures:
        price = f", {spending.money:.4g} {spending.price.currency}" if spending.money else ""
        console.print_to_stderr(f"drawn now: {spending.pictures} pictures{price}")
    return ended


def _image_backend_and_requests(
    images: str, prompts: Mapping[str, str], size: str, each: int
) -> tuple[Any, Sequence[Any]]:
    from revisit.servers.images import ImageRequest, open_image_backend, parse_picture_size
    from revisit.suites.wrbench.build import SIZE as PUBLISHED

    backend = open_image_backend(images)
    size_text = size or backend.settings.size
    picture_size = parse_picture_size(size_text) if size_text else PUBLISHED
    return backend, [
        ImageRequest(name if k == 0 else f"{name}-{k + 1}", prompt, picture_size, k)
        for name, prompt in prompts.items()
        for k in range(each)
    ]


def _print_drawing_plan(
    images: str, prompts: Mapping[str, str], folder: Path, size: str, each: int, json: bool
) -> None:
    from revisit.media.cache_folders import cache_root
    from revisit.servers.image_batch import ImageStore, count_and_cost_of_new_pictures

    backend, requests = _image_backend_and_requests(images, prompts, size, each)
    new, money, currency = count_and_cost_of_new_pictures(requests, backend, ImageStore(folder, cache_root()))
    if json:
        console.print_json({"pictures": len(requests), "to_draw": new, "money": money, "currency": currency})
        return
    price = f", about {money:.4g} {currency}" if money else ""
    typer.echo(f"{len(requests)} pictures, {len(requests) - new} already drawn; {new} to draw{price}")


def _open_writer_client(writer: str, out: Path) -> JudgeClient:
    """Somebody who asks the language model, and keeps its answers in the cache and beside the file."""
    from revisit.judges.settings import judge_from_source
    from revisit.judges.store import AnswerStore, shared_answers_path
    from revisit.media.cache_folders import cache_root

    selection = judge_from_source(writer, option="--writer")
    copy = out.with_suffix(".answers.jsonl")
    return selection.make_client(AnswerStore(shared_answers_path(cache_root(), selection.judge.facts), copy))


def _print_written_and_exit(
    out: Path, count: int, noun: str, trouble: Sequence[str], client: JudgeClient, json: bool
) -> None:
    spent = client.budget.spent
    for sentence in trouble:
        console.print_to_stderr(sentence)
    if json:
        facts = {"file": str(out) if count else None, "written": count, "trouble": list(trouble), "calls": spent.calls}
        console.print_json({**facts, "recorded": client.from_store})
    else:
        typer.echo(f"{count} {noun} in {out}" if count else f"nothing was written: there are no {noun}")
    raise typer.Exit(1 if trouble else 0)
