"""Several samples of one scene in a plain folder: they are its seeds, and add no scenes to a test."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import revisit
from revisit.core import Case
from revisit.datasets.folder.read import read, understand_layout
from revisit.media import encode_mp4
from revisit.results.compare import Contender, compare_with_first
from revisit.results.run import Run

MODELS, SCENES, NUMBERS = ("alpha", "beta"), ("kitchen", "foam"), (0, 1, 2)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str, int], Path]:
    """A clip of a scene: its wall begins each of them, its model and number decide how it goes on."""
    folder = tmp_path_factory.mktemp("clips")

    def make(scene: str, model: str, number: int) -> Path:
        path = folder / f"{scene}-{model}-{number}.mp4"
        if not path.exists():
            rng = np.random.default_rng(list(scene.encode()))
            wall = np.kron(rng.integers(0, 256, (9, 32, 3), dtype=np.uint8), np.ones((4, 4, 1), np.uint8))
            noise = np.random.default_rng([number, *model.encode()]).normal(0, 2, (36, 64, 3))
            step = 1 + number + 3 * (model == "beta")
            frames = [wall[:, k * step :][:, :64] + noise for k in range(4)]
            encode_mp4(path, [np.clip(frame, 0, 255).astype(np.uint8) for frame in frames], 8)
        return path

    return make


def build(root: Path, pattern: str, clip: Callable[[str, str, int], Path], *, own_scenes: bool = False) -> Path:
    """A folder of three samples of each scene and model; with `own_scenes` each begins with a picture of its own."""
    for model in MODELS:
        for scene in SCENES:
            for number in NUMBERS:
                path = root / pattern.format(model=model, scene=scene, number=number)
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(clip(f"{scene}{number}" if own_scenes else scene, model, number), path)
    return root


LAYOUTS = {  # as it is written -> as it is read, and the layout of the other reading
    "{model}/{scene}_{number}.mp4": ("{model}/{scene}_{seed}.mp4", "{model}/{scene}.mp4"),
    "{model}/{scene}_s{number}.mp4": ("{model}/{scene}_s{seed}.mp4", "{model}/{scene}.mp4"),
    "{model}/{scene}/{number}.mp4": ("{model}/{scene}/{seed}.mp4", "{model}/{scene}.mp4"),
    "{model}/{number}/{scene}.mp4": ("{model}/{seed}/{scene}.mp4", "{model}/{scene}.mp4"),
    "{model}/sample_{number}/{scene}.mp4": ("{model}/sample_{seed}/{scene}.mp4", "{model}/{scene}.mp4"),
    "{scene}/{model}-{number}.mp4": ("{scene}/{model}-{seed}.mp4", ""),
    "{scene}/{model}/{number}.mp4": ("{scene}/{model}/{seed}.mp4", ""),
    "{model}_{scene}_sample{number}.mp4": ("{model}_{scene}_sample{seed}.mp4", "{model}_{scene}.mp4"),
    "{scene}_{model}_{number}.mp4": ("{scene}_{model}_{seed}.mp4", ""),
}


@pytest.mark.parametrize("pattern", LAYOUTS)
def test_clips_that_differ_in_a_number_and_begin_alike_are_samples_of_a_scene(pattern: str, tmp_path: Path, clip):
    root = build(tmp_path / "clips", pattern, clip)
    understood = understand_layout(root)
    layout, other = LAYOUTS[pattern]
    cases = [entry for entry in read(root) if isinstance(entry, Case)]
    for case in cases:
        name = pattern.format(model=case.model, scene=case.sample, number=case.seed)
        assert case.clip.path == root / name
    assert len(cases) == 12 and understood.readings[0].layout == layout
    assert (
        understood.summary_sentences[0] == "2 models (alpha and beta) × 2 scenes (foam and kitchen), 3 seeds from names"
    )
    assert "begin with the same picture: they are samples of one scene" in understood.summary_sentences[2]
    assert (f"--layout '{other}' reads each as a scene of its own" if other else "`revisit import scan`") in (
        understood.summary_sentences[2]
    )
    if other:
        assert len(understand_layout(root, other).readings[0].scene_names) == 6


def test_clips_that_begin_otherwise_are_scenes_whatever_they_are_called(tmp_path: Path, clip):
    root = build(tmp_path / "counted", "{model}/{scene}_{number}.mp4", clip, own_scenes=True)
    understood = understand_layout(root)
    assert understood.samples is None and len(understood.readings[0].scene_names) == 6
    named = build(tmp_path / "named", "{model}_{scene}_sample{number}.mp4", clip, own_scenes=True)
    assert "with --layout '{model}_{scene}_sample{seed}.mp4'" in understand_layout(named).summary_sentences[2]
    folders = build(tmp_path / "folders", "{model}/{number}/{scene}.mp4", clip, own_scenes=True)
    assert "3 seeds" not in understand_layout(folders).summary_sentences[0]
    assert "with --layout '{model}/{seed}/{scene}.mp4'" in understand_layout(folders).summary_sentences[2]
    grid = build(tmp_path / "grid", "{scene}_{model}_{number}.mp4", clip, own_scenes=True)
    assert "with --layout '{scene}_{model}_{seed}.mp4'" in understand_layout(grid).summary_sentences[2]


def test_samples_of_a_whole_grid_stay_samples_where_one_scene_begins_otherwise(tmp_path: Path, clip):
    root = build(tmp_path / "clips", "{scene}_{model}_{number}.mp4", clip)
    for number in NUMBERS:
        shutil.copyfile(clip(f"other{number}", "beta", number), root / f"kitchen_beta_{number}.mp4")
    told, example, note = understand_layout(root).summary_sentences
    assert told == "2 models (alpha and beta) × 2 scenes (foam and kitchen), 3 seeds from names"
    assert example.startswith("read as {scene}_{model}_{seed}.mp4")
    others = "kitchen_beta_0.mp4, kitchen_beta_1.mp4 and kitchen_beta_2.mp4"
    assert note.endswith(f"; {others} begin otherwise, and are samples by their names")


def test_numbers_of_checkpoints_are_models(tmp_path: Path, clip):
    for scene in SCENES:
        for step in (1000, 2000, 3000):
            path = tmp_path / f"{scene}/{step}.mp4"
            path.parent.mkdir(exist_ok=True)
            shutil.copyfile(clip(scene, "alpha", step // 1000), path)
    assert understand_layout(tmp_path).readings[0].model_names == ["1000", "2000", "3000"]


def test_samples_of_one_scene_in_folders_of_models(tmp_path: Path, clip):
    for model in MODELS:
        for number in NUMBERS:
            path = tmp_path / f"{model}/{number}.mp4"
            path.parent.mkdir(exist_ok=True)
            shutil.copyfile(clip("foam", model, number), path)
    reading = understand_layout(tmp_path).readings[0]
    assert (reading.model_names, len(reading.scene_names)) == (["alpha", "beta"], 1)


def test_truth_that_has_the_numbers_too_leaves_samples_of_a_scene(tmp_path: Path, clip):
    root = build(tmp_path / "clips", "{model}/{scene}_{number}.mp4", clip)
    for scene in SCENES:
        for number in NUMBERS:
            path = root / f"gt/{scene}_{number}.mp4"
            path.parent.mkdir(exist_ok=True)
            shutil.copyfile(clip(scene, "alpha", number), path)
    understood = understand_layout(root)
    assert understood.summary_sentences[0].startswith(
        "2 models (alpha and beta) × 2 scenes (foam and kitchen), truth from gt/"
    )
    for case in (entry for entry in read(root) if isinstance(entry, Case)):
        assert case.reference is not None and case.reference.path.name == f"{case.sample}_{case.seed}.mp4"


def test_copies_make_no_difference_significant(tmp_path: Path, clip):
    """Two scenes are too few for a test, and stay two however often their clips are copied; copies are told."""
    root = tmp_path / "clips"
    for model in MODELS:
        for scene in SCENES:
            for number in NUMBERS:
                path = root / f"{model}/{scene}_{number}.mp4"
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(clip(scene, model, 0), path)
    run = {"metrics": ["flicker"], "workers": 0, "report": False}
    results = revisit.evaluate(root, out=tmp_path / "run", **run)
    (delta,) = compare_with_first(*sides(results), ["flicker"])
    assert (delta.clips, delta.scenes, delta.p, delta.interval) == (2, 2, None, None)
    remarks = " ".join(Run(tmp_path / "run").plan["remarks"])
    assert "8 of 12 clips are copies of others, byte for byte: foam@alpha#1 is foam@alpha#0" in remarks
    as_scenes = revisit.evaluate(root, out=tmp_path / "other", layout="{model}/{scene}.mp4", **run)
    (delta,) = compare_with_first(*sides(as_scenes), ["flicker"])
    assert (delta.clips, delta.scenes, delta.p, delta.interval) == (2, 2, None, None)
    (remark,) = Run(tmp_path / "other").plan["remarks"][-1:]
    assert "8 of 12 clips are copies of others, byte for byte: foam_1@alpha#0 is foam_0@alpha#0" in remark
    assert "the others are left out" in remark and "foam_1@alpha#0" not in {case.id for case in as_scenes.cases}


@pytest.mark.parametrize(("difference", "clips"), [("", 1), ("prompt", 2), ("reference", 2), ("same reference", 1)])
def test_a_copy_counts_where_anything_tells_its_scene_apart(tmp_path: Path, clip, difference: str, clips: int):
    """A model that makes one clip for two requests was asked twice; the same request twice is one."""
    lines: list[dict[str, str]] = []
    for k, name in enumerate(("attic", "cellar")):
        shutil.copyfile(clip("foam", "alpha", 0), tmp_path / f"{name}.mp4")
        shutil.copyfile(clip("foam", "beta", k if difference == "reference" else 0), tmp_path / f"gt-{name}.mp4")
        lines.append({"id": name, "model": "alpha", "video": f"{name}.mp4"})
        lines[-1] |= {"prompt": name} if difference == "prompt" else {}
        lines[-1] |= {"reference": f"gt-{name}.mp4"} if "reference" in difference else {}
    (tmp_path / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    results = revisit.evaluate(
        tmp_path / "manifest.jsonl", out=tmp_path / "run", metrics=["flicker"], workers=0, report=False
    )
    assert results.cell("flicker").n == len(results.cases) == clips


def sides(results: revisit.Results) -> tuple[Contender, list[Contender]]:
    first, second = (Contender(model, results.where(model=model)) for model in MODELS)
    return first, [second]
