"""WebDataset shards: tar files in which the files of a sample share a name.

    kitchen.mp4  kitchen.json  kitchen.txt  kitchen.reference.mp4        a video
    garden.000.png  garden.001.png  garden.json                          frames
    street.npy                                                           an array (frames, height, width, 3) of bytes

A shard that breaks off gives the samples before it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import Rejected, Remark
from revisit.core.optional import import_optional
from revisit.core.text import count_and_noun, parse_json
from revisit.datasets.entries import REFERENCES, ClipStore, Content, DatasetEntry, Unusable
from revisit.media import IMAGE_SUFFIXES, VIDEO_SUFFIXES

VIDEOS = tuple(suffix[1:] for suffix in VIDEO_SUFFIXES)
IMAGES = "|".join(suffix[1:] for suffix in IMAGE_SUFFIXES)


def list_tar_shards(source: Path) -> list[Path]:
    """The shards of a source: a tar file, or those in a folder."""
    if source.is_file():
        return [source] if source.suffix == ".tar" else []
    return sorted(source.rglob("*.tar")) if source.is_dir() else []


def read_shards(source: Path, roots: Sequence[Path] = ()) -> Iterator[DatasetEntry | Rejected | Remark]:
    """The samples of all shards; a name that an earlier shard has gets that of its own shard in front of it."""
    tars = import_optional("webdataset.tariterators", "webdataset")
    names: set[tuple[object, ...]] = set()
    renamed: list[str] = []
    for shard in list_tar_shards(source):
        store, count, own_names = ClipStore.for_shard(shard), 0, set[tuple[object, ...]]()
        try:
            with shard.open("rb") as file:
                for sample in tars.group_by_keys(tars.tar_file_expander([{"url": shard.name, "stream": file}])):
                    count += 1
                    entry = _entry_of_sample(sample, store)
                    if isinstance(entry, DatasetEntry):
                        own_names.add(name := (entry.name, entry.details.get("model"), entry.details.get("seed")))
                        if name in names:
                            entry = replace(entry, name=f"{shard.stem}/{entry.name}")
                            renamed.append(entry.name)
                    yield entry
        except Exception as error:  # whatever a torn tar leads to
            why = " ".join(str(error).split())[:120] or type(error).__name__
            yield Rejected(shard.name, f"the shard cannot be read beyond its sample {count} ({why}); others are read")
        names |= own_names
    if renamed:
        yield Remark(
            f"{count_and_noun(len(renamed), 'sample')} with the name of one in an earlier shard got that of the shard, "
            f"such as {renamed[0]}; `model` in a sample's json says whose clip it is, if shards are of models"
        )


def _entry_of_sample(sample: Mapping[str, Any], store: ClipStore) -> DatasetEntry | Rejected:
    name = str(sample["__key__"])
    try:
        content = _clip_content_with_prefix(sample, "")
        if content is None:
            endings = ", ".join(key for key in sample if not key.startswith("__"))
            raise Unusable(f"none of its files is a video, a picture with a number or an npy array ({endings})")
        truths = (_clip_content_with_prefix(sample, f"{word}.") for word in REFERENCES)
        truth = next((part for part in truths if part is not None), None)
        return store.make_entry(name, content, truth, _text_and_json_fields(sample))
    except (Unusable, ValueError, OSError) as error:
        return Rejected(name, " ".join(str(error).split())[:300])


def _text_and_json_fields(sample: Mapping[str, Any]) -> dict[str, object]:
    fields: dict[str, object] = {}
    if text := sample.get("txt") or sample.get("text"):
        fields["prompt"] = text.decode().strip()
    if "json" in sample:
        content = parse_json(sample["json"].decode())
        fields |= content if isinstance(content, dict) else {}
    return fields


def _clip_content_with_prefix(sample: Mapping[str, Any], prefix: str) -> Content | None:
    """The video, pictures or array whose endings begin so."""
    for suffix in VIDEOS:
        if prefix + suffix in sample:
            return bytes(sample[prefix + suffix])
    if f"{prefix}npy" in sample:
        return np.load(io.BytesIO(sample[f"{prefix}npy"]), allow_pickle=False)
    pattern = re.compile(rf"{re.escape(prefix)}([0-9]+)\.({IMAGES})")
    numbered = {int(match[1]): sample[key] for key in sample if (match := pattern.fullmatch(key))}
    return [numbered[number] for number in sorted(numbered)] or None
