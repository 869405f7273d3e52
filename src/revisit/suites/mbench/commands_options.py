"""Options that several commands of `revisit mbench` take."""

from __future__ import annotations

import typer

SOURCE = typer.Argument(help="A dataset: the folder with dataset.yaml, samples/ and models/.")
METRICS = typer.Option(
    [], "--metrics", help="Metric names, separated by commas; all of the dataset's setting by default."
)
MODELS = typer.Option("", "--models", help="Only these models, separated by commas.")
SUBSETS = typer.Option("", "--subsets", help="Only these subsets, separated by commas.")
CONDITIONS = typer.Option("", "--conditions", help="Only these conditions, separated by commas.")
SAMPLES = typer.Option("", "--sample-ids", help="Only these samples, separated by commas.")
ROOT = typer.Option([], "--root", help="A further folder that paths in the lists may point to.")
ARTIFACTS = typer.Option(
    [], "--artifacts", help="The folder that `prepare --output` wrote, if it is not found automatically."
)
