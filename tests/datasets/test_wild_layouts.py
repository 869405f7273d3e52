"""Folders as they come from the wild, with real clips: each is read rightly, or the reader says that two readings fit.

Of every clip the table says what it is: (model, scene, seed, its truth). Truth has no row: it is in no contest.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
from typer.testing import CliRunner

from revisit.cli.eval_ import ask_for_layout
from revisit.cli.main import app
from revisit.core import Case, Clip, Rejected, Remark, UsageError
from revisit.datasets.folder.read import read, understand_layout
from revisit.engine.request import Request
from revisit.media import encode_mp4, open_clip, write_picture

Row = tuple[str, str, int, str | None]  # model, scene, seed, truth
Layout = dict[str, Row | None]  # path -> what it is; None for truth
SCENES = ("Real_007", "Barnyard_001", "HongKong_001")
MODELS = ("lingbot", "svc", "gt")
FRAMES, HEIGHT, WIDTH = 6, 36, 64


def grid(
    path: str, scenes: list[str], models: list[str], truth: str | None = None, seeds: tuple[int, ...] = (0,)
) -> Layout:
    """Every scene of every model, at a path by a pattern, with truth by another."""
    rows: Layout = {}
    for scene in scenes:
        place = truth.format(scene=scene) if truth else None
        if place:
            rows[place] = None
        for model in models:
            for seed in seeds:
                rows[path.format(scene=scene, model=model, seed=seed)] = (model, scene, seed, place)
    return rows


# Written down before the reader knew them.
FIRST: dict[str, Layout] = {
    "flat, truth among the names": grid(
        "{scene}_{model}.mp4", ["Real_007", "Barn_001"], ["wan", "svc"], "{scene}_gt.mp4"
    ),
    "scene first, with one gt in every folder": grid(
        "{scene}/{model}.mp4", ["kitchen", "hall", "yard"], ["wan", "svc"], "{scene}/gt.mp4"
    ),
    "steps, with a folder between and seeds, gt beside": grid(
        "{model}/samples/{scene}_seed{seed}.mp4",
        ["Real_020", "Real_021"],
        ["step_10000", "step_20000"],
        "gt/{scene}.mp4",
        seeds=(0, 1),
    ),
    "seeds as folders": grid(
        "{model}/seed_{seed}/{scene}.mp4", ["kitchen", "hall"], ["wan", "svc"], "gt/{scene}.mp4", seeds=(7, 42)
    ),
    "names with underscores in scenes and models": grid(
        "{scene}_{model}.mp4", ["Real_020", "Zen_Garden_001"], ["wan_2_1", "matrix_game", "svc"], "{scene}_gt.mp4"
    ),
    "two dots": grid("{scene}.{model}.mp4", ["shot.v2", "shot.v3"], ["wan", "svc"], "{scene}.gt.mp4"),
    "truth beside each clip of the only model": grid("{scene}.mp4", ["walk 1", "walk 2"], ["clips"], "{scene}_gt.mp4"),
    "one model only": grid("{scene}.mp4", ["kitchen_a", "kitchen_b", "hall"], ["clips"]),
}


# Written down with the reader.
SECOND: dict[str, Layout] = {
    "model first": grid("{model}/{scene}.mp4", ["kitchen", "hall"], ["wan", "svc"], "gt/{scene}.mp4"),
    "model first, without truth": grid("{model}/{scene}.mp4", ["kitchen", "hall"], ["wan2.1", "svc"]),
    "scene first, without truth": grid("{scene}/{model}.mp4", ["kitchen", "hall"], ["wan2.1", "svc"]),
    "scene first, names that say nothing: first frames tell": grid("{scene}/{model}.mp4", ["a", "b", "c"], ["x", "y"]),
    "model first, names that say nothing: first frames tell": grid("{model}/{scene}.mp4", ["a", "b", "c"], ["x", "y"]),
    "flat, the model before the scene": grid("{model}-{scene}.mp4", ["hall", "yard"], ["wan", "svc"]),
    "flat, without truth, names with underscores": grid(
        "{scene}_{model}.mp4", ["Real_020", "Zen_Garden_001"], ["wan_2_1", "matrix_game_2", "svc"]
    ),
    "folders of frames": grid("{model}/{scene}", ["kitchen", "hall"], ["wan", "svc"], "gt/{scene}"),
    "folders of frames, scene first": grid("{scene}/{model}", ["kitchen", "hall"], ["wan", "svc"], "{scene}/gt"),
    "nested below a folder of results": grid("results/{model}/{scene}.mp4", ["kitchen", "hall"], ["wan", "svc"]),
    "nested, truth nested otherwise": grid(
        "{model}/outputs/{scene}/video.mp4", ["kitchen", "hall"], ["wan", "svc"], "ground_truth/videos/{scene}.mp4"
    ),
    "scene, model, clip": grid("{scene}/{model}/clip.mp4", ["kitchen", "hall"], ["wan", "svc"], "{scene}/gt/clip.mp4"),
    "the name of the folder in the name of the file": grid(
        "{model}/{model}_{scene}.mp4", ["kitchen", "hall"], ["wan", "svc"]
    ),
    "spaces": grid(
        "{model}/{scene}.mp4", ["my kitchen 1", "my kitchen 2"], ["Wan 2.1", "our model"], "Ground Truth/{scene}.mp4"
    ),
    "unicode": grid("{scene}_{model}.mp4", ["café", "庭園"], ["wan", "модель"], "{scene}_gt.mp4"),
    "truth in the folder of each model": {
        f"{model}/{kind}/{scene}.mp4": None if kind == "gt" else (model, scene, 0, f"{model}/gt/{scene}.mp4")
        for model in ("wan", "svc") for scene in ("kitchen", "hall") for kind in ("gt", "pred")
    },
    "truth in the folder of each scene of one model": {
        f"{scene}/{kind}/video.mp4": None if kind == "gt" else ("clips", scene, 0, f"{scene}/gt/video.mp4")
        for scene in ("kitchen", "hall") for kind in ("gt", "pred")
    },
    "numbers behind the scene are seeds where the truth names the scene": {
        "gt/Real_020.mp4": None, "gt/Real_021.mp4": None,
        **{
            f"wan/Real_{n}_{seed}.mp4": ("wan", f"Real_{n}", seed, f"gt/Real_{n}.mp4")
            for n in ("020", "021") for seed in (0, 1)
        },
    },
    "steps below models": grid("{model}/{scene}.mp4", ["kitchen", "hall"], ["step-500", "step-1000"]),
    "one clip of each step below a model": {
        f"wan/step_{n}/x.mp4": (f"step_{n}", "x", 0, None) for n in (1000, 2000)
    },
    "bare steps below two models": {
        f"{model}/{n}/{scene}.mp4": (f"{model}-{n}", scene, 0, None)
        for model in ("wan", "svc") for n in (500, 1000) for scene in ("kitchen", "hall")
    },
    "bare steps below two models, with truth beside": {
        **{f"gt/{scene}.mp4": None for scene in ("kitchen", "hall")},
        **{
            f"{model}/{n}/{scene}.mp4": (f"{model}-{n}", scene, 0, f"gt/{scene}.mp4")
            for model in ("wan", "svc") for n in (1000, 2000) for scene in ("kitchen", "hall")
        },
    },
    "scenes by round numbers, with nothing else inside": {
        f"wan/{n}/video.mp4": ("wan", f"{n}/video", 0, None) for n in (100, 200, 300)
    },
    "scenes by round numbers, with clips of their own": {
        f"wan/{n}/{scene}.mp4": ("wan", f"{n}/{scene}", 0, None)
        for n, scene in ((100, "kitchen"), (200, "hall"), (300, "yard"))
    },
    "one model only, with truth beside": grid("{model}/{scene}.mp4", ["kitchen", "hall"], ["wan"], "gt/{scene}.mp4"),
    "one model only, in a folder of samples": grid("samples/{scene}.mp4", ["kitchen", "hall"], ["clips"]),
    "checkpoints by bare numbers behind scenes: first frames tell": grid(
        "{scene}_{model}.mp4", ["kitchen", "hall", "yard"], ["ema_0001000", "ema_0002000"]
    ),
    "checkpoints of one scene": {f"step_{n}.mp4": (f"step_{n}", "clips", 0, None) for n in (1000, 2000)},
    "checkpoints of one scene, below one folder": {
        f"wall/epoch_{n}.mp4": (f"epoch_{n}", "wall", 0, None) for n in (1, 2)
    },
    "checkpoints of one scene, with its name": {
        f"hall_epoch_{n}.mp4": (f"epoch_{n}", "hall", 0, None) for n in (1, 2)
    },
    "one checkpoint of several scenes": {
        f"{name}_step1000.mp4": ("clips", f"{name}_step1000", 0, None) for name in ("hall", "yard")
    },
    "the folder of one scene, with its truth": {
        "gt.mp4": None, **{f"{model}.mp4": (model, "clips", 0, "gt.mp4") for model in ("wan", "ours")}
    },
    "validation clips of a trainer, by step, rank and number": {
        f"validation-{step}-0-{n}-{scene}.mp4": (f"validation-{step}", f"0-{n}-{scene}", 0, None)
        for n, scene in enumerate(("kitchen", "hall", "yard")) for step in (100, 200)
    },
    "a sweep whose names end in numbers": grid(
        "{scene}_{model}.mp4", ["kitchen", "hall", "yard"], ["cfg3.0", "cfg7.5"]
    ),
    "scene, camera, model": {
        f"{scene}/{camera}/{model}.mp4": (model, f"{scene}/{camera}", 0, None)
        for scene in ("kitchen", "hall") for camera in ("left", "right") for model in ("wan", "svc")
    },
    "a run folder of each model's own": {
        f"{model}/{run}/{scene}.mp4": (model, scene, 0, None)
        for model, run in (("wan", "20260101"), ("ours", "20260102")) for scene in ("kitchen", "hall")
    },
    "folders repeated in the names of files, truth, too": {
        **{f"gt/gt_{scene}.mp4": None for scene in ("kitchen", "hall")},
        **{
            f"{model}/{model}_{scene}.mp4": (model, scene, 0, f"gt/gt_{scene}.mp4")
            for model in ("wan", "ours") for scene in ("kitchen", "hall")
        },
    },
    "models repeated in the names of files, truth beside": grid(
        "{model}/{model}_{scene}.mp4", ["kitchen", "hall"], ["wan", "ours"], "gt/{scene}.mp4"
    ),
    "a comparison of truth and prediction beside both": grid(
        "{scene}/{model}.mp4", ["kitchen", "hall"], ["pred", "gt_pred"], "{scene}/gt.mp4"
    ),
    "what loggers of experiments keep": grid("media/videos/{scene}.mp4", ["kitchen", "hall"], ["clips"]),
    "renders of two checkpoints, each beside the truth": {
        f"{scene}/test/ours_{step}/{kind}": None if kind == "gt" else (
            f"ours_{step}", scene, 0, f"{scene}/test/ours_{step}/gt"
        )
        for scene in ("kitchen", "hall") for step in (7000, 30000) for kind in ("gt", "renders")
    },
    "renders of two methods, each beside the truth": {
        f"{model}/{scene}/test/ours_30000/{kind}": None if kind == "gt" else (
            model, scene, 0, f"{model}/{scene}/test/ours_30000/gt"
        )
        for model in ("3dgs", "mip") for scene in ("kitchen", "hall") for kind in ("gt", "renders")
    },
    "renders of views to learn from and to be tested by": {
        f"{scene}/{part}/ours_30000/{kind}": None if kind == "gt" else (
            "clips", f"{scene}/{part}/ours_30000", 0, f"{scene}/{part}/ours_30000/gt"
        )
        for scene in ("kitchen", "hall") for part in ("train", "test") for kind in ("gt", "renders")
    },
    "parts of a dataset, of which one scene has a truth": {
        "gt/kitchen.mp4": None, "wan/kitchen.mp4": ("wan", "kitchen", 0, "gt/kitchen.mp4"),
        **{f"wan/{part}/yard.mp4": ("wan", f"{part}/yard", 0, None) for part in ("val", "test")},
    },
    "renders of one scene": {"test/ours_30000/gt": None, "test/ours_30000/renders": (
        "clips", "ours_30000", 0, "test/ours_30000/gt"
    )},
}  # fmt: skip
# Two readings fit: which is taken, and the layout of the other.
OPEN: dict[str, tuple[Layout, str]] = {
    "one clip in every folder": (
        {f"{name}/video.mp4": (name, "video", 0, None) for name in ("one", "two", "three")},
        "{scene}/video.mp4",
    ),
    "numbers": (
        {f"{name}_{n}.mp4": ("clips", f"{name}_{n}", 0, None) for name in ("walk", "jump") for n in ("001", "002")},
        "{model}_{scene}.mp4",
    ),
    "nothing repeats": (
        {f"{name}.mp4": (name.split("/")[0], name.split("/")[1], 0, None) for name in ("park/a", "park/b", "beach/c")},
        "{scene}.mp4",
    ),
    "bare steps below one model": (
        {f"wan/{n}/{x}.mp4": (f"{n}", x, 0, None) for n in (0, 1000, 2000) for x in ("kitchen", "hall")},
        "{model}/{scene}.mp4",
    ),
    "bare steps of one scene": (
        {f"wan/{n}/x.mp4": (f"{n}", "x", 0, None) for n in (1000, 2000)},
        "{model}/{scene}.mp4",
    ),
    **{
        f"scenes below one model that are counted as {numbers[0]}": (
            {f"wan/{n}/{x}.mp4": ("wan", f"{n}/{x}", 0, None) for n in numbers for x in ("left", "right")},
            "wan/{model}/{scene}.mp4",
        )
        for numbers in (("1", "2"), ("001", "002"), ("0050", "0100"), ("100", "101"))
    },
    "names within one folder": (
        {f"mine/{a}_{b}.mp4": ("mine", f"{a}_{b}", 0, None) for a in ("u", "v") for b in ("left", "right")},
        "mine/{scene}_{model}.mp4",
    ),
}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """A small clip of a scene by a model: cut from published clips where they are here, else painted."""
    folder = tmp_path_factory.mktemp("pool")
    videos = Path(__file__).parents[2] / "../shared/data/memobench/videos"

    def clip(scene: str, model: str) -> Path:
        place = folder / f"{scene}_{model}.mp4"
        if not place.exists():
            source = videos / place.name
            encode_mp4(place, cut(source) if source.is_file() else painted(scene, model), 8)
        return place

    clips = [[clip(scene, model) for model in MODELS] for scene in SCENES]

    def pick(scene: str, model: str) -> Path:
        return clips[names.setdefault(scene, len(names)) % len(SCENES)][
            -1 if model == "gt" else models.setdefault(model, len(models)) % (len(MODELS) - 1)
        ]

    names: dict[str, int] = {}
    models: dict[str, int] = {}
    return pick


def cut(path: Path) -> list[np.ndarray]:
    """The first frames of a clip, made small."""
    import cv2

    with open_clip(Clip(path, count=FRAMES)) as stream:
        return [cv2.resize(frame.rgb, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA) for frame in stream]


def painted(scene: str, model: str) -> list[np.ndarray]:
    """A wall that belongs to the scene; the model decides how far the view slides."""
    rng = np.random.default_rng(SCENES.index(scene))
    wall = np.kron(rng.integers(0, 256, (HEIGHT // 4, WIDTH // 2, 3), dtype=np.uint8), np.ones((4, 4, 1), np.uint8))
    return [wall[:, k * (1 + MODELS.index(model)) :][:, :WIDTH] for k in range(FRAMES)]


def build(root: Path, layout: Layout, pool: Callable[[str, str], Path]) -> Path:
    """The folder of a layout, with a clip at every path."""
    scene_of = {truth: scene for row in layout.values() if row for _, scene, _, truth in [row] if truth}
    for name, row in layout.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        clip = pool(scene_of.get(name, name), "gt") if row is None else pool(row[1], row[0])
        if path.suffix:
            shutil.copyfile(clip, path)
            continue
        with av.open(str(clip)) as container:
            for k, frame in enumerate(container.decode(video=0)):
                write_picture(path / f"{k:04d}.png", frame.to_ndarray(format="rgb24"))
    return root


def reading(root: Path, **options: str) -> Layout:
    """What the reader makes of a folder."""
    entries = list(read(root, **options))
    assert not [entry for entry in entries if isinstance(entry, Rejected)]
    return {
        case.clip.path.relative_to(root).as_posix(): (
            case.model,
            case.sample,
            case.seed,
            case.reference.path.relative_to(root).as_posix() if case.reference else None,
        )
        for case in entries
        if isinstance(case, Case)
    }


@pytest.mark.parametrize("name", [*FIRST, *SECOND])
def test_a_layout_is_read_as_what_it_is(name: str, tmp_path: Path, pool) -> None:
    layout = {**FIRST, **SECOND}[name]
    root = build(tmp_path / "clips", layout, pool)
    assert reading(root) == {path: row for path, row in layout.items() if row}
    sentences = understand_layout(root).summary_sentences
    assert len(sentences) <= 3
    models, scenes = ({row[k] for row in layout.values() if row} for k in (0, 1))
    counts = [f"{len(some)} {noun}{'s' * (len(some) > 1)} (" for some, noun in ((models, "model"), (scenes, "scene"))]
    assert sentences[0].startswith(counts[0]) and f"× {counts[1]}" in sentences[0]
    assert ("truth from" in sentences[0]) == (None in layout.values())


@pytest.mark.parametrize("name", OPEN)
def test_where_two_readings_fit_the_other_one_is_named_and_can_be_had(name: str, tmp_path: Path, pool) -> None:
    layout, other = OPEN[name]
    root = build(tmp_path / "clips", layout, pool)
    assert reading(root) == layout
    first, *others = understand_layout(root).readings
    assert other in [one.layout for one in others]
    told = understand_layout(root).summary_sentences[-1]
    assert "other readings fit" in told and f"--layout '{other}'" in told and f"--layout '{first.layout}'" in told
    assert ("are read as steps of a training" in told) == name.startswith("bare steps")
    assert reading(root, layout=first.layout) == layout  # what is named reads as it says
    chosen = next(one for one in others if one.layout == other)
    assert {path: row[:3] for path, row in reading(root, layout=other).items() if row} == {
        path.relative_to(root).as_posix(): tuple(facts) for path, facts in chosen.facts.items()
    }


def test_a_name_is_the_same_whichever_system_wrote_it(tmp_path: Path, pool) -> None:
    """macOS decomposes letters: café may be written in two ways."""
    root = build(tmp_path / "clips", {"wan/cafe\u0301.mp4": ("wan", "x", 0, None), "gt/caf\u00e9.mp4": None}, pool)
    assert reading(root) == {"wan/cafe\u0301.mp4": ("wan", "caf\u00e9", 0, "gt/caf\u00e9.mp4")}


def test_truth_that_no_clip_goes_with_is_told_and_is_in_no_contest(tmp_path: Path, pool) -> None:
    rows: Layout = {
        "gt/kitchen.mp4": None,
        "gt/cellar.mp4": None,
        "wan/kitchen.mp4": ("wan", "kitchen", 0, "gt/kitchen.mp4"),
    }
    root = build(tmp_path / "some", rows, pool)
    assert reading(root) == {"wan/kitchen.mp4": ("wan", "kitchen", 0, "gt/kitchen.mp4")}
    assert "no model has a clip of 1 scene of the truth: cellar" in understand_layout(root).summary_sentences[2]
    root = build(tmp_path / "none", {"gt/kitchen.mp4": None, "wan/hall.mp4": ("wan", "hall", 0, None)}, pool)
    assert reading(root) == {"wan/hall.mp4": ("wan", "hall", 0, None)}
    assert (
        "gt says that it is the truth, but no name in it (kitchen) goes with a clip (hall)"
        in understand_layout(root).summary_sentences[2]
    )
    both = build(tmp_path / "both", {"gt/a.mp4": None, "ref/a.mp4": None, "wan/a.mp4": ("wan", "a", 0, None)}, pool)
    with pytest.raises(UsageError, match="gt and ref both say that they are the truth"):
        list(read(both))


def test_a_layout_that_is_given_is_kept_to(tmp_path: Path, pool) -> None:
    root = build(tmp_path / "clips", SECOND["model first"], pool)
    transposed = reading(root, layout="{scene}/{model}.mp4")
    assert transposed["wan/kitchen.mp4"] == ("kitchen", "wan", 0, "gt/kitchen.mp4")  # the truth still goes by its name
    one = understand_layout(root, layout="wan/{scene}.mp4")
    assert one.readings[0].model_names == ["clips"] and one.unfitting == ("svc/hall.mp4", "svc/kitchen.mp4")
    assert "2 clips left out, which the layout does not fit" in one.summary_sentences[2]
    with pytest.raises(UsageError, match=r"no clip fits --layout '{model}/{scene}.webm'; they are named svc/hall"):
        list(read(root, layout="{model}/{scene}.webm"))
    for wrong in ("{model}.mp4", "{scene}/{scene}.mp4", "{scene}/{camera}.mp4"):
        with pytest.raises(UsageError, match="a layout must contain"):
            list(read(root, layout=wrong))
    steps = build(tmp_path / "steps", {"s/12/seed3/kitchen.mp4": ("x", "kitchen", 3, None)}, pool)
    found = reading(steps, layout="*/{step}/seed{seed}/{scene}.mp4")
    assert found == {"s/12/seed3/kitchen.mp4": ("step_12", "kitchen", 3, None)}


def test_truth_elsewhere_is_found_by_the_names_of_scenes(tmp_path: Path, pool) -> None:
    rows = grid("samples/{scene}_seed{seed}.mp4", ["Real_020", "Real_021"], ["step_500"], seeds=(0, 1))
    root = build(tmp_path / "run/step_500", rows, pool)
    truth = build(tmp_path / "truth/videos", {"Real_020_gt.mp4": None, "Real_021_gt.mp4": None}, pool)
    cases = [case for case in read(root, reference=str(truth)) if isinstance(case, Case)]
    assert [(case.model, case.sample, case.seed) for case in cases] == [
        ("step_500", scene, seed) for scene in ("Real_020", "Real_021") for seed in (0, 1)
    ]
    assert all(case.reference == Clip(truth / f"{case.sample}_gt.mp4") for case in cases)
    inside = build(root / "here", {"Real_020.mp4": None}, pool)  # truth below the source is no clip of a model
    cases = [case for case in read(root, reference=str(inside)) if isinstance(case, Case)]
    assert {case.model for case in cases} == {"step_500"} and {bool(case.reference) for case in cases} == {True, False}
    with pytest.raises(UsageError, match=r"no clip of .* has the name of a true video"):
        list(read(root, reference=str(build(tmp_path / "other", {"cellar.mp4": None}, pool))))
    with pytest.raises(UsageError, match="there is no such folder of true videos"):
        list(read(root, reference=str(tmp_path / "nowhere")))


def test_the_only_truth_is_that_of_a_clip_that_is_named_alone_and_not_of_any_clip_of_a_manifest(
    tmp_path: Path, pool
) -> None:
    root = build(tmp_path, {"wan/kitchen.mp4": ("wan", "kitchen", 0, None), "film/take.mp4": None}, pool)
    remark, case = read(root / "wan/kitchen.mp4", reference=str(root / "film"))
    assert case.reference == Clip(root / "film/take.mp4") and remark.sentence == "film has references of 1 of 1 clip"
    (root / "manifest.jsonl").write_text('{"id": "kitchen", "model": "wan", "video": "wan/kitchen.mp4"}\n')
    with pytest.raises(UsageError, match=r"no clip \(kitchen\) has the name of one in .*film \(take\)"):
        list(read(root / "manifest.jsonl", reference=str(root / "film")))


def test_a_clip_that_one_model_lacks_is_named_and_counted(tmp_path: Path, pool) -> None:
    rows = grid("{model}/{scene}.mp4", ["kitchen", "hall", "yard"], ["wan", "svc"])
    del rows["svc/yard.mp4"]
    root = build(tmp_path / "clips", rows, pool)
    assert (
        understand_layout(root)
        .summary_sentences[0]
        .endswith("× 3 scenes (hall, kitchen and yard), 1 of 6 clips missing: yard of svc")
    )
    (missing,) = [entry for entry in read(root) if isinstance(entry, Rejected)]
    assert missing == Rejected("yard@svc#0", "svc has no clip of yard, which others have", "svc", missing=True)
    answer = CliRunner().invoke(app, ["check", str(root), "--json"])
    found = json.loads(answer.stdout)
    assert (found["there"], found["clips"], answer.exit_code) == (5, 6, 1)
    assert [fault["sentence"] for fault in found["faults"] if fault["kind"] == "missing"] == [
        f"there is no {root / 'svc/yard.mp4'}"
    ]
    apart = build(tmp_path / "apart", {f"{name}.mp4": None for name in ("wan/a", "wan/b", "svc/c", "svc/d")}, pool)
    assert not [entry for entry in read(apart) if isinstance(entry, Rejected)]  # they have no scene in common


def test_a_model_that_may_be_the_truth_is_pointed_out(tmp_path: Path, pool) -> None:
    hint = "if real is the truth, rename it to gt: as it is, it is ranked as a model"
    rows = grid("{model}/{scene}.mp4", ["kitchen", "hall"], ["real", "fake"])
    assert hint in understand_layout(build(tmp_path / "clips", rows, pool)).summary_sentences[-1]
    rows = grid("{model}/{scene}.mp4", ["kitchen", "hall"], ["real", "wan"])  # may be a subset
    assert hint not in understand_layout(build(tmp_path / "other", rows, pool)).summary_sentences[-1]
    rows = grid("{model}/{scene}.mp4", ["kitchen", "hall"], ["real"])
    assert hint not in understand_layout(build(tmp_path / "alone", rows, pool)).summary_sentences[-1]


def test_clips_that_begin_in_black_tell_nothing_of_scenes(tmp_path: Path, pool) -> None:
    layout = grid("{scene}_{model}.mp4", ["Real_020", "Real_021", "Real_022"], ["x", "y"])
    root = build(tmp_path / "clips", layout, pool)
    for clip in root.glob("*_x.mp4"):
        encode_mp4(clip, [np.zeros((HEIGHT, WIDTH, 3), np.uint8)] * FRAMES, 8)
    assert reading(root) == layout


def test_models_below_folders_of_datasets_are_told_by_first_frames(tmp_path: Path, pool) -> None:
    layout = {
        f"{place}/{model}/{scene}.mp4": (model, f"{place}/{scene}", 0, None)
        for place, scenes in (("re10k", "ab"), ("dl3dv", "cd")) for model in "xy" for scene in scenes
    }  # fmt: skip
    root = build(tmp_path / "clips", layout, pool)
    assert reading(root) == layout
    assert "with --layout '{model}/{scene}.mp4'" in understand_layout(root).summary_sentences[-1]


def test_folders_that_may_be_models_are_offered_as_such(tmp_path: Path, pool) -> None:
    """run1/ and run2/ may be two draws of one model, or two models that begin with the same picture."""
    layout = {f"run{n}/{scene}.mp4": ("clips", scene, n, None) for n in (1, 2) for scene in ("kitchen", "hall")}
    root = build(tmp_path / "clips", layout, lambda scene, model: pool(scene, "wan"))
    assert reading(root) == layout
    assert "--layout '{model}/{scene}.mp4' takes folders for models" in understand_layout(root).summary_sentences[-1]
    assert {row[0] for row in reading(root, layout="{model}/{scene}.mp4").values() if row} == {"run1", "run2"}


def test_a_folder_of_frames_is_a_clip_by_itself(tmp_path: Path, pool) -> None:
    root = build(tmp_path / "clips", {"wan/kitchen": ("wan", "kitchen", 0, None)}, pool)
    (case,) = read(root / "wan/kitchen")
    assert isinstance(case, Case) and (case.model, case.sample, case.clip.path) == (
        "wan", "kitchen", root / "wan/kitchen",
    )  # fmt: skip
    answer = CliRunner().invoke(app, ["check", str(root / "wan/kitchen"), "--json"])
    assert (json.loads(answer.stdout)["there"], answer.exit_code) == (1, 0)


def test_plan_counts_what_the_clips_of_models_lack(tmp_path: Path, pool) -> None:
    """Of two clips one has no truth; the truth itself lacks none."""
    rows = grid("{model}/{scene}.mp4", ["kitchen", "hall"], ["wan"], "gt/{scene}.mp4")
    del rows["gt/hall.mp4"]
    root = build(tmp_path / "clips", rows, pool)
    told = CliRunner().invoke(app, ["plan", str(root)]).stderr
    assert "1 of 2 clips: no reference video was given for this case" in told
    assert "2 of 2 clips: no target was given for this case" in told


def test_files_that_are_not_read_are_named(tmp_path: Path, pool) -> None:
    rows = {"wan/kitchen.mp4": ("wan", "kitchen", 0, None), "svc/kitchen": ("svc", "kitchen", 0, None)}
    root = build(tmp_path / "clips", rows, pool)
    for name in ("svc/hall.png", "prompt.txt", "wan/kitchen.csv", "wan/README.md", "wan/kitchen.job.json"):
        (root / name).write_bytes(b"x")
    np.save(root / "wan/kitchen_poses.npy", np.eye(4))
    told = [entry.sentence for entry in read(root) if isinstance(entry, Remark)]
    assert "3 other files not read, being no clip: prompt.txt, svc/hall.png and wan/kitchen.csv" in told


def test_on_a_terminal_the_reading_is_asked(tmp_path: Path, pool, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    root = build(tmp_path / "clips", OPEN["one clip in every folder"][0], pool)
    request = Request.from_options(root)
    assert ask_for_layout(request) is request  # nobody is there to answer; the remark names both
    monkeypatch.setattr("sys.stdin", Terminal("7\n2\n"))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    asked = ask_for_layout(request)
    assert asked.options == ("layout={scene}/video.mp4",) and asked.suite == "folder"
    said = capsys.readouterr().err
    assert "1. 3 models (one, three and two) × 1 scene (video), as {model}/{scene}.mp4" in said
    assert "2. 1 model (clips) × 3 scenes (one, three and two), as {scene}/video.mp4" in said
    assert ask_for_layout(asked) is asked and ask_for_layout(request, quiet=True) is request


class Terminal(io.StringIO):
    """Somebody who answers."""

    def isatty(self) -> bool:
        return True
