"""`revisit import mbench` and `revisit build mbench`: datasets of one's own videos."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console
from revisit.cli import judge as judging
from revisit.cli.options import JSON, out_option


def import_videos(
    videos: Path = typer.Argument(help="A folder of generated videos."),
    dataset: Path = typer.Option(..., help="The MBench dataset that gets the model: the folder with dataset.yaml."),
    model: str = typer.Option(..., help="Name of the model; becomes models/<name>."),
    assignments: Path = typer.Option(
        None, help="JSONL with subset, sample_id and condition_id; by default the list of the dataset's only model."
    ),
    mode: str = typer.Option("link", help="How videos are placed: link, hardlink or copy."),
    pattern: str = typer.Option(
        "", help="Path of a video, such as '{sample_id}/{condition_id}.mp4'; common layouts by default."
    ),
    json: bool = JSON,
) -> None:
    """Add a model's videos to an MBench dataset. Running it again adds new videos."""
    from revisit.core import UsageError
    from revisit.suites.mbench.dataset import LIST, open_mbench_dataset
    from revisit.suites.mbench.package import add_model_to_dataset

    data = open_mbench_dataset(dataset)
    if assignments is None:
        other_models = [name for name in data.models if name != model]
        if len(other_models) != 1:
            raise UsageError(f"{dataset} has {len(other_models)} other models; name a list with --assignments")
        assignments = data.root / "models" / other_models[0] / LIST
    placed, kept, missing = add_model_to_dataset(data, model, videos, assignments, mode, pattern)
    if json:
        console.print_json({"placed": placed, "kept": kept, "missing": missing})
        return
    place = data.root / "models" / model
    console.print_to_stderr(f"{placed} videos placed, {kept} kept, {len(missing)} missing in {place}")
    console.print_first_lines_to_stderr([f"missing: {item}" for item in missing], 10)


def build_both_datasets(
    videos: Path = typer.Argument(help="A folder of videos."),
    out: Path = out_option("An empty folder; MBench-A and MBench-T are made in it.", required=True),
    judge: str = judging.JUDGE,
    frames: int = judging.FRAMES,
    licence: str = typer.Option(..., "--licence", help="Of the videos, such as CC-BY-4.0; it goes onto the card."),
    source: str = typer.Option(..., help="Where the videos are from; it goes onto the card."),
    json: bool = JSON,
) -> None:
    """Choose and caption videos with a judge; write MBench-A and MBench-T."""
    from revisit.core import RevisitError, UsageError
    from revisit.suites.authoring import make_empty_folder, videos_in
    from revisit.suites.mbench.build import describe_source_video, write_mbench_a_and_t

    files = videos_in(videos)
    make_empty_folder(out)
    descriptions = []
    with judging.open_judge_client(judge) as client:
        for video in files:
            try:
                sample = describe_source_video(client, video, judging.read_spread_frames(video, frames))
            except RevisitError as error:
                console.print_to_stderr(f"left out: {error}")
                continue
            descriptions.append(sample)
            console.print_to_stderr(f"{video.name}: {sample.subset}, {sample.facts['name']}")
    if not descriptions:
        raise UsageError("no video was chosen; the reasons are above")
    places = write_mbench_a_and_t(out, descriptions, licence=licence, source=source)
    console.print_to_stderr(f"{len(descriptions)} of {len(files)} videos chosen")
    facts = {"chosen": len(descriptions), "videos": len(files), "datasets": [str(place) for place in places]}
    console.print_json_or_text(facts, "\n".join(f"revisit build check {place}" for place in places), json)
