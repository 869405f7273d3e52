"""`revisit demo`: models with known failures, rendered and evaluated."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console

SUITES = ("folder", "mind")


def demo(
    out: Path = typer.Option(None, help="Folder for the videos and the run; demo, or demo-<suite>, by default."),
    suite: str = typer.Option("folder", help=f"In whose layout: {' or '.join(SUITES)}."),
    scenes: int = typer.Option(4, min=1, max=4, help="How many of the four scenes; of the suite folder only."),
    workers: int = typer.Option(None, help="Processes; as many as cores by default."),
    fresh: bool = typer.Option(False, "--fresh", help="Render and evaluate again from the start."),
    json: bool = typer.Option(False, "--json", help="Print the summary as JSON."),
) -> None:
    """Render small worlds with models that remember or fail in a known way, and evaluate them."""
    from revisit.cli.eval_ import eval_
    from revisit.core import UsageError

    if suite not in SUITES:
        raise UsageError(f"there is a demo for {' and '.join(SUITES)}, not for {suite!r}")
    out = out or Path("demo" if suite == "folder" else f"demo-{suite}")
    source, option = (_mind if suite == "mind" else _folder)(out / "videos", fresh, scenes)
    eval_(
        source=source, suite=suite, set="lite", protocol=None, metric=[], out=out / "run", limit=None,  # type: ignore[arg-type]
        workers=workers, fresh=fresh, align="auto", root=[], option=option, param=[], judge="", device="", precision="",
        batch=None, limits="", report=True,  # type: ignore[arg-type]
        json=json, quiet=False,
    )  # fmt: skip


def _folder(videos: Path, fresh: bool, scenes: int) -> tuple[Path, list[str]]:
    from revisit.worlds.demo import SCENES, render_demo

    if fresh or not (videos / "manifest.jsonl").is_file():  # the manifest is written last: with it, all is there
        console.message(f"rendering {scenes} rooms, as they are and as five models remember them, into {videos}")
        render_demo(videos, scenes=SCENES[:scenes], progress=console.Counter("rendered"))
    return videos, []


def _mind(videos: Path, fresh: bool, scenes: int) -> tuple[Path, list[str]]:
    from revisit.worlds.mind import DONE, render_mind

    truth, predictions = videos / "MIND-Data", videos / "predictions"
    if fresh or not (videos / DONE).is_file():
        console.message(f"rendering a small dataset in the layout of MIND, and three models, into {videos}")
        render_mind(videos, progress=console.Counter("rendered"))
    return predictions, [f"gt={truth.resolve()}"]
