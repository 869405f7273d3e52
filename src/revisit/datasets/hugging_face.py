"""Hugging Face datasets on disk: what `save_to_disk` writes, or parquet files as the hub keeps them.

A column of videos, of lists of pictures or of arrays (frames, height, width, 3) of bytes is the clip: `video`, `frames`
or the only one of this kind. `reference` is the truth; `prompt`, `camera`, `model`, `fps` and the like are what a
manifest calls so. Every shard is opened by itself, so that a bad one costs its own rows only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from revisit.core import Rejected, UsageError
from revisit.core.optional import import_optional
from revisit.core.text import parse_json
from revisit.datasets import entries

CLIPS = ("video", "frames", "clip", "images")
STATE, SPLITS = "state.json", "dataset_dict.json"


def is_hugging_face_dataset(source: Path, *, beside_clips: bool = False) -> bool:
    """Whether a folder is one; parquet files beside clips are only where they say that they hold videos or pictures."""
    if not source.is_dir():
        return False
    shards = _list_shards(source)
    return any(map(_declares_clips, shards)) if beside_clips else bool(shards)


def _declares_clips(shard: Path) -> bool:
    """Whether a shard is no table of prompts or of scores."""
    if shard.suffix == ".arrow":
        return True
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        return False
    try:
        declared = (parquet.read_schema(shard).metadata or {}).get(b"huggingface", b"")
    except (ArrowException, OSError):
        return False
    return any(kind in declared for kind in (b'"Video"', b'"Image"', b'"Array4D"'))


def read_hugging_face(source: Path, roots: Sequence[Path] = ()) -> Iterator[entries.DatasetEntry | Rejected]:
    """The rows of all shards; rows without a name are numbered by shard."""
    datasets = import_optional("datasets", "datasets")
    for shard in _list_shards(source):
        label = shard.relative_to(source).as_posix()
        try:
            rows = _open_undecoded_rows(datasets, shard)
            columns = _clip_and_reference_columns(datasets, rows)
        except UsageError:
            raise
        except Exception as error:  # whatever a torn file leads to
            why = " ".join(str(error).split())[:120] or type(error).__name__
            yield Rejected(label, f"the shard cannot be read ({why}); others are read")
            continue
        store, split = entries.ClipStore.for_shard(shard), shard.parent.name if (source / SPLITS).is_file() else ""
        for number in range(len(rows)):
            row = rows[number : number + 1].to_pylist()[0]
            row["subset"] = row.get("subset") or split
            yield _entry_of_row(row, columns, store, f"{shard.stem}-{number:05d}", (source, *roots))


def _list_shards(source: Path) -> list[Path]:
    """Arrow files in the order that the dataset says, or parquet files."""
    if (source / SPLITS).is_file():
        splits = parse_json((source / SPLITS).read_text(encoding="utf-8"))["splits"]
        return [shard for split in splits for shard in _list_shards(source / Path(str(split)).name)]
    if (source / STATE).is_file():
        files = parse_json((source / STATE).read_text(encoding="utf-8"))["_data_files"]
        return [source / Path(str(file["filename"])).name for file in files]
    return sorted([*source.glob("*.parquet"), *source.glob("data/*.parquet")])


def _open_undecoded_rows(datasets: Any, shard: Path) -> Any:
    """The rows as they are stored: videos and pictures as bytes or paths, none of them decoded."""
    if shard.suffix == ".arrow":
        return datasets.Dataset.from_file(str(shard)).with_format("arrow")
    from pyarrow import parquet

    table = parquet.read_table(shard)
    info = datasets.DatasetInfo(features=datasets.Features.from_arrow_schema(table.schema))
    return datasets.Dataset(datasets.table.InMemoryTable(table), info).with_format("arrow")


def _clip_and_reference_columns(datasets: Any, rows: Any) -> tuple[str, str | None]:
    """The column of clips, and that of references."""
    media = [name for name, kind in rows.features.items() if _is_clip_feature(datasets, kind)]
    truth = next((name for name in entries.REFERENCES if name in media), None)
    mine = [name for name in media if name not in entries.REFERENCES]
    clip = next((name for name in CLIPS if name in mine), mine[0] if len(mine) == 1 else None)
    if clip is None:
        there = ", ".join(mine or rows.features)
        raise UsageError(f"no column is called video or frames, and it is unclear which one holds the clips: {there}")
    return clip, truth


def _is_clip_feature(datasets: Any, kind: Any) -> bool:
    inner = getattr(kind, "feature", None)  # of a list
    return (
        isinstance(kind, datasets.Video | datasets.Array4D)
        or isinstance(inner, datasets.Image)
        or (isinstance(kind, datasets.Value) and kind.dtype in ("binary", "large_binary"))
    )


def _entry_of_row(
    row: dict[str, Any], columns: tuple[str, str | None], store: entries.ClipStore, number: str, allowed: Sequence[Path]
) -> entries.DatasetEntry | Rejected:
    clip, truth = columns
    name = next((str(row[field]) for field in entries.NAMES if row.get(field) not in (None, "")), number)
    fields = {key: value for key, value in row.items() if key not in columns}
    try:
        reference = None if truth is None or row[truth] is None else entries.clip_content_of_field(row[truth], allowed)
        return store.make_entry(name, entries.clip_content_of_field(row[clip], allowed), reference, fields)
    except (entries.Unusable, ValueError, OSError) as error:
        return Rejected(name, " ".join(str(error).split())[:300])
