"""MBench-T as it is published: objects have a card with a name and no place. From the user's command to the submission.

The networks are the paper set's architectures, tiny and random, saved in the published formats; what other networks
would say of faces, style and captions comes from files, through a set of the user's own.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from revisit.cli.main import app
from revisit.core import UsageError
from revisit.media import save_npz
from revisit.suites.mbench.world import LAYOUT
from revisit.worlds import make_world, play
from revisit.worlds.layouts.common import Model
from tests.judging import MODEL, completion, question_of, sees_cards, serving
from tests.mbench import SUBSETS

torch = pytest.importorskip("torch", reason="needs torch")

from tests.tiny_networks import save_dinov2, save_grounding_dino, save_sam2  # noqa: E402

SET = """
title: the paper's networks for objects, files for the rest
extends: paper
roles:
  face_features: import.faces
  body_features: import.bodies
  gram_distances: import.grams
  text_features: import.clip_features
"""
OBJECTS = ("mb_object_texture", "mb_object_geometry")
FOUND = ("--param", "paper.masks.threshold=0", "--param", "paper.object_features.threshold=0")


def invoke(*arguments: object, code: int = 0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, (done.output, done.exception)
    return done


def refused(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert isinstance(done.exception, UsageError), (done.output, done.exception)
    return str(done.exception)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rendered set by text, with two models and what networks say of people, style and captions in files."""
    film = play(make_world(2, "room", "gift"), "yaw", "changed", (96, 160), frames=17)
    models = [Model("perfect"), Model("state_reset")]
    films = {f"{s}__sample_001__text": film for s in SUBSETS}
    root = LAYOUT.write(tmp_path_factory.mktemp("t"), films, models)
    frame = np.arange(0, 17, 2)
    like = np.random.default_rng(0).normal(size=(len(frame), 8)) * 0.05 + 1
    maker = np.array("a file")
    pairs = {name: np.ones((4, 2)) for name in ("norm", "other_norm")}
    for model in ("perfect", "state_reset"):
        home = root / "models" / model / "artifacts"
        save_npz(home / "human/sample_001/text/faces.npz", {"vector": like, "frame": frame, "maker": maker})
        bodies = {"vector": like, "face": np.arange(len(frame)), "maker": maker}
        save_npz(home / "human/sample_001/text/bodies.npz", bodies)
        grams = {"frame": frame[1:5], "other": frame[:4], "difference": np.full((4, 2), 0.1), **pairs, "maker": maker}
        save_npz(home / "environment/sample_001/text/grams.npz", grams)
        text = {
            "image": like, "text": like[:5], "frame": frame, "segment": np.minimum(np.arange(9) // 2, 4),
            "maker": maker,
        }  # fmt: skip
        save_npz(home / "causal/sample_001/text/clip_features.npz", text)
    return root


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    home = tmp_path_factory.mktemp("weights")
    save_sam2(home / "sam2.1-hiera-tiny", sees=True)
    save_grounding_dino(home / "grounding-dino-tiny")
    save_dinov2(home / "dinov2-base")
    return home


@pytest.fixture
def own_set(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REVISIT_WEIGHTS", str(tiny))
    monkeypatch.setenv("REVISIT_DEVICE", "cpu")
    (tmp_path / "mine.yaml").write_text(SET)
    return tmp_path / "mine.yaml"


def judge(body: dict):
    right = sees_cards(body)
    if right is not None:
        return completion("yes" if right else "no")
    if "Rate two things" in question_of(body):
        return completion(json.dumps({"progress": 4, "correctness": 4}))
    return completion(json.dumps({"triggered": "yes", "confidence": 0.9}))


def records(run: Path) -> dict[tuple[str, str], dict]:
    found = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    return {(record["case"], record.get("metric", record.get("gate"))): record for record in found}


def test_rendered_text_sets_say_what_the_object_is_and_not_where(dataset: Path) -> None:
    sample = json.loads((dataset / "samples/object/sample_001/sample.json").read_text())
    assert "object_anchor" not in sample["metadata"] and sample["metadata"]["object_card"]["name"]
    assert "valid" in invoke("mbench", "validate", dataset, "--subsets", "object").output


@pytest.mark.long
def test_both_object_metrics_score_and_the_run_can_be_submitted(dataset: Path, own_set: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with serving(judge) as server:
        flags = (
            "--set", own_set, "--vlm-judge", "openai-compatible", "--vlm-base-url", server.url, "--vlm-model", MODEL,
            "--workers", 0, *FOUND,
        )  # fmt: skip
        invoke("mbench", "eval", dataset, "--output", run, *flags)
    answers = records(run)
    for model in ("perfect", "state_reset"):
        for id in OBJECTS:
            record = answers[f"object:sample_001:text@{model}", id]
            assert record["status"] == "scored" and 0 <= record["score"] <= 1, record
            told = record["facts"].get("target_from") or record["facts"]["described_by"]
            assert "sam2.1-hiera-tiny from a name, found by grounding-dino-tiny" in told
    # What an earlier run left behind, of the other setting, is not shipped.
    shutil.copytree(
        run / "metrics/mbencht.entity.object_texture_consistency",
        run / "metrics/mbencha.entity.object_texture_consistency",
    )
    done = invoke(
        "mbench", "submit", run, "--model", "perfect", "--link", "https://x.org/m", "--out", tmp_path / "s.zip"
    )
    assert "valid" in invoke("mbench", "check-submission", tmp_path / "s.zip").output, done.output
    with zipfile.ZipFile(tmp_path / "s.zip") as archive:
        entity = json.loads(archive.read("verification/entity/summary.json"))
    assert "mbencht.entity.object_texture_consistency" in entity
    assert "mbencha.entity.object_texture_consistency" not in entity


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


NETWORKS = (
    "human_identity_consistency,human_appearance_consistency,object_texture_consistency,object_geometry_consistency,"
    "spatial_epipolar,spatial_reprojection,rendering_style,rendering_lighting,prompt_interaction"
)


def submit(run: Path, *more: object) -> tuple[object, ...]:
    return ("mbench", "submit", run, "--model", "perfect", "--link", "https://x.org/m", "--out", run / "s.zip", *more)


@pytest.mark.long
def test_a_machine_with_networks_and_one_with_a_judge_add_up(
    dataset: Path, own_set: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVISIT_CACHE", str(cache))
    run, here = tmp_path / "run", ("--workers", 0, "--quiet")
    invoke("mbench", "eval", dataset, "--output", run, "--set", own_set, "--metrics", NETWORKS, *FOUND, *here)
    assert "the run is partial: the trigger was evaluated on 0 of 4 items" in refused(*submit(run))
    before = records(run)
    with serving(judge) as server:
        asks = ("--vlm-judge", "openai-compatible", "--vlm-base-url", server.url, "--vlm-model", MODEL)
        monkeypatch.delenv("REVISIT_WEIGHTS")
        monkeypatch.setenv("REVISIT_CACHE", str(tmp_path / "another"))  # nothing that a network made is there
        names = ("--metrics", "state_progress,progress_correctness")
        invoke("mbench", "eval", dataset, "--output", run, *names, *asks, *here)
        summary = json.loads((run / "summary.json").read_text())["mbench"]
        texture = summary["dimensions"]["mb_object_texture"]["models"]["perfect"]
        assert texture["unknown"] == 1 and texture["coverage"] == [0, 1], "nobody was asked about objects yet"
        assert "the trigger was evaluated on 1 of 4 items" in refused(*submit(run))
        invoke("mbench", "eval", dataset, "--output", run, "--metrics", "trigger", *asks, *here)
    assert {key: records(run)[key] for key in before} == before, "what the first machine said stays"
    assert len(list((run / "metrics").iterdir())) == 11
    told = invoke(*submit(run)).output
    assert "protocol corrected, set mine: human identity" in told
    assert f"protocol corrected, set lite, judge {MODEL}: the trigger" in told
    with zipfile.ZipFile(run / "s.zip") as archive:
        causal = json.loads(archive.read("verification/causal/summary.json"))
    made = causal["mbencht.causal.state_progress"]
    assert (made["set"], made["judge"], made["trigger_judge"]) == ("lite", MODEL, MODEL)
    again = json.loads(invoke("eval", run, "--rescore", "--json", "--no-report").stdout)
    assert len(again["mbench"]["dimensions"]) == 11, "scoring again keeps what other calls asked"
    done = refused("mbench", "eval", dataset, "--output", run, "--protocol", "paper", "--metrics", "rendering_lighting")
    assert "holds answers of the protocol 'corrected', but this call uses 'paper'" in done


@pytest.mark.long
def test_partial_runs_are_refused(
    dataset: Path, own_set: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVISIT_CACHE", str(cache))
    root = tmp_path / "set"
    shutil.copytree(dataset, root)
    with serving(judge) as server:
        flags = (
            "--set", own_set, "--vlm-judge", "openai-compatible", "--vlm-base-url", server.url, "--vlm-model", MODEL,
            "--workers", 0, "--quiet",
        )  # fmt: skip
        run = tmp_path / "run"
        invoke("mbench", "eval", root, "--output", run, *flags, *FOUND)
        listed = root / "models/perfect/samples.jsonl"
        rows = listed.read_text()
        more = rows.splitlines()[0].replace("sample_001", "sample_002")
        listed.write_text(rows + more + "\n")
        assert "it has 4 of the 5 items of the model's list; " in refused(*submit(run))
        listed.write_text(rows)
        invoke(*submit(run))
        whole = (run / "run.json").read_text()
        facts = json.loads(whole)
        facts["invocations"][-1]["finished"] = None  # as a kill leaves it
        (run / "run.json").write_text(json.dumps(facts))
        assert "it was stopped early; run the same command again" in refused(*submit(run))
        (run / "run.json").write_text(whole)
        shutil.move(root, tmp_path / "moved")
        assert "the dataset of this run is missing" in refused(*submit(run))
        invoke(*submit(run, "--dataset", tmp_path / "moved"))
        shutil.move(tmp_path / "moved", root)
        video = root / "models/perfect/outputs/human/sample_001/text/video.mp4"
        video.unlink()
        shutil.copy(root / "models/state_reset/outputs/human/sample_001/text/video.mp4", video)
        assert "1 videos have changed since they were scored" in refused(*submit(run))
        # A changed video loses the answers of earlier calls, also to what this call does not ask.
        invoke("mbench", "eval", root, "--output", run, "--metrics", "human_identity_consistency", *flags)
        assert "human appearance was evaluated on 0 of 1 items" in refused(*submit(run))
        # An item that is taken off the list is forgotten, and its files are not shipped.
        listed.write_text("".join(line + "\n" for line in rows.splitlines() if '"human:' not in line))
        invoke("mbench", "eval", root, "--output", run, "--metrics", "rendering_lighting", *flags)
        items = (run / "items.jsonl").read_text()
        assert '"human:sample_001:text", "model_id": "state_reset"' in items
        assert '"human:sample_001:text", "model_id": "perfect"' not in items
        assert "a total needs all dimensions of MBench-T" in refused(*submit(run))
        listed.write_text(rows)
        invoke("mbench", "eval", root, "--output", tmp_path / "part", "--limit", 7, *flags, *FOUND)
        assert "the run is partial: --limit took 7 of 8 items" in refused(*submit(tmp_path / "part"))
    nobody = refused("mbench", "submit", run, "--model", "nobody", "--link", "https://x.org/m")
    assert "the run has no model 'nobody'; it has" in nobody


def test_what_the_detector_does_not_find_is_unscored_and_says_so(dataset: Path, own_set: Path, tmp_path: Path) -> None:
    never = ("--param", "paper.masks.threshold=1", "--param", "paper.object_features.threshold=1")
    invoke(
        "eval", dataset, "--set", own_set, "--out", tmp_path / "run", "--workers", 0, "-m", OBJECTS[0], "-m",
        OBJECTS[1], "--option", "models=perfect", "--no-report", *never,
    )  # fmt: skip
    answers = records(tmp_path / "run")
    for id in OBJECTS:
        record = answers["object:sample_001:text@perfect", id]
        assert record["status"] == "unscored" and "found no 'gift" in record["reason"]["sentence"], record


def test_a_set_that_cannot_look_for_a_name_says_which_one_can(dataset: Path, tmp_path: Path) -> None:
    done = invoke(
        "mbench", "eval", dataset, "--metrics", "object_texture_consistency,object_geometry_consistency", "--output",
        tmp_path / "run", "--set", "lite", "--workers", 0, code=1,
    )  # fmt: skip
    assert "--set paper" in done.output and "small or paper" not in done.output
