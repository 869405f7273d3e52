"""The fit of the target gate: what it computes, and that the stored model and figures are those of the stored table."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from target_fit import (
    HIDDEN,
    LABELS,
    auc,
    auc_interval,
    bounded_logistic,
    calibration,
    choose,
    fit,
    judge,
    left_out,
    outcomes,
    read_table,
    tempered,
    usable,
    with_version,
)

import revisit
from revisit.core import GATES, OBSERVERS, UsageError, digest
from revisit.metrics.target_return import (
    LAYOUT,
    LOOKS,
    clip_features_and_rule_verdict,
    label_probabilities,
    target_models,
)

FOLDER = Path(__file__).parents[2] / "benchmarks" / "target"
MODEL = Path(__file__).parents[2] / "src" / "revisit" / "metrics" / "target_model.json"


def script(path: Path) -> ModuleType:
    """A script that is in no package, imported under a name of its own."""
    name = f"target_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look for their module there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def labelled():
    return read_table(FOLDER / "labelled.jsonl")


@pytest.fixture(scope="module")
def table(labelled):
    """All clips that take part in the fit."""
    return [*read_table(FOLDER / "features.jsonl"), *(line for line in labelled if not line["exam"])]


@pytest.mark.parametrize("signs", [(1, 1, 1), (0, 0, 0)])
def test_a_logistic_fit_is_that_of_an_independent_library(signs):
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    x = rng.random((300, 3))
    y = (x @ [2.0, 3.0, 1.0] - 3 + rng.logistic(size=300) > 0).astype(float)
    solved = bounded_logistic(x, y, np.ones(300), np.array(signs))
    theirs = linear_model.LogisticRegression(C=1 / 0.3, tol=1e-8, max_iter=1000).fit(x, y)
    assert solved[1:] == pytest.approx(theirs.coef_[0], abs=5e-3)
    assert solved[0] == pytest.approx(theirs.intercept_[0], abs=1e-2)


def test_a_weight_never_has_the_wrong_sign():
    rng = np.random.default_rng(1)
    x = rng.random((200, 2))
    y = (x[:, 0] > 0.5).astype(float)
    solved = bounded_logistic(x, y, np.ones(200), np.array([-1, 1]))
    assert solved[1] == 0 and solved[2] >= 0


def test_the_stored_model_is_the_fit_of_the_stored_table(table):
    stored = json.loads(MODEL.read_text(encoding="utf-8"))
    again = "make the table, fit again (docs/target-gate.md) and look at the difference"
    assert stored["provenance"]["table"] == digest(table), again
    assert stored["provenance"]["gate"] == GATES["target_return"].version, again
    for name, version in stored["provenance"]["observers"].items():
        assert OBSERVERS[name].version == version, again
    for kind in (LAYOUT, LOOKS):
        model = fit(table, kind)
        for stage in ("hidden", "returned"):
            assert stored["models"][kind][stage]["weights"] == pytest.approx(model[stage]["weights"], abs=2e-3), again


def test_a_version_of_the_gate_has_one_model():
    """A resumed run keeps verdicts of the same version, so another fit needs another one."""
    stored = json.loads(MODEL.read_text(encoding="utf-8"))
    version = GATES["target_return"].version
    digests = stored["provenance"]["digests"]
    assert digests[str(version)] == digest(stored["models"]), "the model has changed: raise the gate's version"
    assert max(map(int, digests)) == version and len(set(digests.values())) == len(digests)
    assert with_version(digests, version, stored["models"]) == digests
    other = {**stored["models"], LAYOUT: {**stored["models"][LAYOUT], "decided": 0.99}}
    with pytest.raises(UsageError, match="raise the version of `target_return`"):
        with_version(digests, version, other)
    assert with_version(digests, version + 1, other)[str(version + 1)] == digest(other)


def test_figures_are_of_the_stored_table(table):
    figures = json.loads((FOLDER / "figures.json").read_text(encoding="utf-8"))
    assert figures["provenance"]["table"] == digest(table)
    for kind, least, least_of_hiding in ((LAYOUT, 0.90, 0.70), (LOOKS, 0.93, 0.85)):
        real = figures[kind]["scenes_left_out"]["real"]
        assert real["n"] == sum(not line["simulated"] for line in usable(table, kind))
        assert real["right_of_decided"]["share"] >= least
        assert real["hides_right_share"]["share"] >= least_of_hiding
        simulated = figures[kind]["scenes_left_out"]["simulated_calibration"]
        assert simulated["n"] >= 1000 and simulated["auc"] >= 0.80 and 0.85 <= simulated["at_0.9"]["share"] <= 0.95


def test_a_clip_is_never_judged_by_its_own_scene(table, monkeypatch):
    seen = []
    real = [line for line in usable(table, LAYOUT) if not line["simulated"]]

    def fit_of_others(lines, kind):
        seen.append({scene for line in lines for scene in line["scenes"]})
        return target_models()[kind]

    monkeypatch.setattr("target_fit.fit", fit_of_others)
    left_out(real, LAYOUT, lambda line: line["scenes"][0])
    scenes = sorted({line["scenes"][0] for line in real})
    assert len(seen) == len(scenes) > 10
    assert all(scene not in others for scene, others in zip(scenes, seen, strict=True))


def test_every_feature_of_looks_speaks_in_its_direction():
    model = target_models()[LOOKS]
    features = dict.fromkeys({*HIDDEN[LOOKS], *model["returned"]["weights"]}, 0.5)
    before = label_probabilities(model, features)
    assert sum(before.values()) == pytest.approx(1)
    for name, sign in HIDDEN[LOOKS].items():
        after = label_probabilities(model, {**features, name: 1.0})
        assert (before["never hidden"] - after["never hidden"]) * sign >= 0


def test_a_clearer_return_by_layout_is_a_more_probable_one():
    """Weights of layout may have either sign, but cues that rise together must not speak against what they show."""
    model = target_models()[LAYOUT]
    lost = dict.fromkeys(HIDDEN[LAYOUT], 0.0) | {"away": 1.0, "time_after": 0.7, "near_fall": 0.5, "place_again": 1.0}
    back = [name for name in lost if name.startswith(("back_", "near_end", "part_end", "own_colour_")) or name == "end"]
    chances = [
        label_probabilities(model, lost | dict.fromkeys(back, level))["hidden, returned"] for level in (0.0, 0.5, 1.0)
    ]
    assert chances[0] < 0.1 < chances[1] < chances[2] and chances[2] > 0.9


def test_temperature_one_changes_nothing_and_level_is_the_lowest_that_is_right_enough():
    chances = np.array([[0.9, 0.06, 0.04], [0.2, 0.7, 0.1], [0.3, 0.1, 0.6], [0.15, 0.55, 0.3]])
    assert tempered(chances, 1.0) == pytest.approx(chances)
    assert tempered(chances, 2.0).max(axis=1).max() < 0.9
    label = np.array([0, 1, 2, 2])  # the least sure one is wrong
    temperature, level = choose(chances, label, np.ones(4, bool), 0.95)
    counted = outcomes(tempered(chances, temperature), label, np.full(4, level))
    assert counted["right"] == counted["decided"] == 3 and counted["hides_right"] == 2 and counted["hides"] == 3
    assert counted["labels"][LABELS[2]]["cannot tell"] == 1


def test_real_and_simulated_clips_count_the_same_in_the_level():
    """Ninety simulated clips that are right at 0.7 do not outweigh ten real ones that are wrong there."""
    sure = np.array([0.7] * 95 + [0.9] * 5)
    chances = np.stack([sure, 0.6 * (1 - sure), 0.4 * (1 - sure)], axis=1)
    real = np.arange(100) >= 90
    label = np.where((sure == 0.7) & real, 1, 0)
    temperature, level = choose(chances, label, real, 0.9)
    least_right = tempered(chances, temperature).max(axis=1)[-1]
    assert tempered(chances, temperature).max(axis=1)[0] < level <= least_right
    assert choose(chances, np.zeros(100, int), real, 0.9)[1] == 0.5


def test_the_stored_exam_is_of_other_worlds_and_of_the_stored_model(table):
    exam = read_table(FOLDER / "exam.jsonl")
    assert not {line["scenes"][0] for line in exam} & {scene for line in table for scene in line["scenes"]}
    stored = json.loads((FOLDER / "figures.json").read_text(encoding="utf-8"))["exam"]
    judged = judge(exam, target_models())
    assert stored.keys() == judged.keys()
    for kind, figures in judged.items():
        assert figures["outcomes"]["right"] == stored[kind]["outcomes"]["right"]
        assert figures["calibration"]["auc"] == pytest.approx(stored[kind]["calibration"]["auc"])


def test_an_exam_counts_what_the_stored_model_says(table):
    table = [line for line in table if "owner" not in line]  # those have intervals over scenes, which take longer
    judged = judge(table, target_models())
    counted = judged[LAYOUT]["outcomes"]
    assert counted["n"] == len(usable(table, LAYOUT)) and counted["right_of_decided"]["share"] > 0.8
    turned = [{**line, "label": LABELS[(LABELS.index(line["label"]) + 1) % 3]} for line in table]
    assert judge(turned, target_models())[LAYOUT]["outcomes"]["right_of_decided"]["share"] < 0.2


def test_calibration_of_a_known_model():
    """Labels drawn from the probabilities themselves: the curve lies on the diagonal."""
    rng = np.random.default_rng(3)
    chances = rng.dirichlet((0.4, 0.4, 0.4), size=6000)
    label = np.array([rng.choice(3, p=row) for row in chances])
    found = calibration(chances, label)
    assert all(abs(step["confidence"] - step["share"]) < 0.05 for step in found["curve"])
    assert found["auc"] == pytest.approx(0.76, abs=0.04) and 0.85 < found["at_0.9"]["share"] < 0.95
    assert auc(np.array([0.1, 0.9]), np.array([False, True])) == 1.0


def test_labelled_targets_are_those_of_the_table_and_an_exam_is_chosen_by_its_scene(labelled):
    rows = json.loads((FOLDER / "labels.json").read_text(encoding="utf-8"))
    first = read_table(FOLDER / "features.jsonl")
    earlier = {scene for line in first if not line["simulated"] for scene in line["scenes"]}
    names = [f"{Path(row['clip']).stem}: {row['target']}" for row in rows]
    assert len(set(names)) == len(rows) and [line["clip"] for line in labelled] == names
    for row, line in zip(rows, labelled, strict=True):
        even = hashlib.sha256(row["scene"].encode()).digest()[0] % 2 == 0
        assert row["exam"] == (even and row["scene"] not in earlier), row["clip"]
        assert (row["label"], row["exam"], [row["scene"]]) == (line["label"], line["exam"], line["scenes"])
        assert (row["gone"] is None) == (row["label"] == LABELS[0]) and (row["back"] is None) == (
            row["label"] != LABELS[1]
        )
        x0, y0, x1, y1 = row["box"]
        assert 0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1
        frames = [row[name] for name in ("first", "gone", "back", "last") if row[name] is not None]
        assert frames == sorted(frames)


def test_no_label_of_an_exam_scene_is_in_the_fit_and_scenes_have_one_name(table, labelled):
    exam = {line["scenes"][0] for line in labelled if line["exam"]}
    real = {scene for line in table if not line["simulated"] for scene in line["scenes"]}
    assert len(exam) > 10 and not exam & real
    pictures = {scene for line in table if line["source"] == "composites" for scene in line["scenes"]}
    assert len(pictures) > 40 and pictures <= real | exam, "a picture's scene has another name than its clips"


def test_a_fit_without_a_scene_has_no_picture_of_it(table, labelled, monkeypatch):
    exam = [line for line in labelled if line["exam"]]
    fitted = []

    def fit_of_others(lines, kind):
        fitted.append({scene for line in lines for scene in line["scenes"]})
        return target_models()[kind]

    monkeypatch.setattr("target_fit.fit", fit_of_others)
    judge(exam, {LAYOUT: target_models()[LAYOUT]}, table)
    scenes = sorted({line["scenes"][0] for line in exam})
    assert all(scene not in others for scene, others in zip(scenes, fitted, strict=True))


def test_figures_by_eye_are_of_the_stored_labels_and_model(labelled):
    exam = [line for line in labelled if line["exam"]]
    stored = json.loads((FOLDER / "figures.json").read_text(encoding="utf-8"))["by_eye"]
    for kind, figures in judge(exam, target_models()).items():
        assert stored[kind]["outcomes"]["labels"] == figures["outcomes"]["labels"]
        assert stored[kind]["calibration"]["auc"] == figures["calibration"]["auc"]
    before = json.loads((FOLDER / "by_eye.json").read_text(encoding="utf-8"))
    assert before["provenance"]["table"] == digest(labelled)
    assert before["all"][LOOKS]["outcomes"]["n"] == len(usable(labelled, LOOKS))


def test_an_interval_over_scenes_is_wider_than_one_over_clips():
    """Eighty clips of eight scenes, each scene right or wrong as a whole, are worth eight."""
    sure = np.repeat(np.linspace(0.5, 0.95, 8), 10)
    chances = np.stack([sure, (1 - sure) / 2, (1 - sure) / 2], axis=1)
    label = np.repeat([1, 0, 1, 0, 0, 1, 0, 0], 10)
    of_clips = auc_interval(chances, label, [str(k) for k in range(80)])
    of_scenes = auc_interval(chances, label, [str(k // 10) for k in range(80)])
    assert of_scenes[1] - of_scenes[0] > 2 * (of_clips[1] - of_clips[0])
    middle = auc(sure, label == 0)
    assert middle is not None and of_clips[0] < middle < of_clips[1]


@pytest.fixture
def labels(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))  # scripts there import each other by their bare names
    return script(FOLDER / "labels.py")


def test_a_labelled_clip_begins_and_ends_where_its_label_says(labels):
    path = MODEL.parents[1] / "audit" / "golden" / "clips" / "truth" / "gift.mp4"
    whole, fps = labels.frames_of(path, 0, None)
    some, _ = labels.frames_of(path, 5, 9)
    assert len(whole) == 33 and fps == 16 and np.array_equal(some, whole[5:10])
    assert len(labels.frames_of(path, 30, 99)[0]) == 3


def test_stored_features_are_those_of_the_clips(labels, labelled, shared):
    targets = labels.read_targets()
    assert all((shared / target.folder / target.clip).is_file() for target in targets)
    (target,) = (one for one in targets if one.clip.startswith("re10k_0bf") and one.target == "golden bowl")
    track = revisit.observe(shared / target.folder / target.clip, "lite.target", target=tuple(target.box))
    features, _ = clip_features_and_rule_verdict(track, None)
    (stored,) = (line["features"] for line in labelled if line["clip"] == target.name)
    assert features == pytest.approx({name: stored[name] for name in features}, abs=0.02)


def test_the_page_has_the_stored_figures():
    module = script(Path(__file__).parents[2] / "docs" / "make_target_gate.py")
    text = module.PAGE.read_text(encoding="utf-8")
    stored = [json.loads(one.read_text(encoding="utf-8")) for one in (module.FIGURES, module.COST, module.FIRST)]
    assert module.page(text, *stored) == text, "target-gate.md: run `make docs`"


def test_the_page_says_how_the_gate_does_with_fast_cameras():
    page = (Path(__file__).parents[2] / "docs/target-gate.md").read_text(encoding="utf-8")
    quick = [line for line in read_table(FOLDER / "forgetful.jsonl") if "-quick" in line["clip"]]
    counts = {}
    for kind, model in target_models().items():
        clips = [line for line in usable(quick, kind) if kind in line["judges"]]
        chances = np.array([list(label_probabilities(model, line["features"]).values()) for line in clips])
        label = np.array([LABELS.index(line["label"]) for line in clips])
        counts[kind] = outcomes(chances, label, np.full(len(clips), model["decided"]))
    lite, small = counts[LAYOUT], counts[LOOKS]
    assert f"In {lite['n']} clips of rendered worlds" in page
    assert f"`lite` decides {lite['decided']} of them and is right on {lite['right']}," in page
    assert f"`small` is right on {small['right']} of {small['n']}." in page
