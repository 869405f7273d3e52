"""The way in from Python: evaluate, load, score, observe, and the measures as functions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revisit
from revisit.core import METRICS, UsageError
from tests.conftest import PROJECT, moving_frames

BOX = (0.3, 0.25, 0.6, 0.75)


@pytest.fixture(scope="module")
def clip() -> np.ndarray:
    return np.stack(moving_frames(20, (64, 97), seed=3, speed=6))


@pytest.fixture(scope="module")
def truth(clip: np.ndarray) -> np.ndarray:
    noise = np.random.default_rng(0).integers(-4, 5, clip.shape)
    return np.clip(clip.astype(int) + noise, 0, 255).astype(np.uint8)


def write_png(folder: Path, frames: np.ndarray) -> Path:
    import cv2

    folder.mkdir(parents=True)
    for number, frame in enumerate(frames):
        cv2.imwrite(str(folder / f"{number:03d}.png"), frame[..., ::-1])
    return folder


def write_ffv1(path: Path, frames: np.ndarray) -> Path:
    import av

    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=25)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "bgr0"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24").reformat(format="bgr0")))
        container.mux(stream.encode())
    return path


def answers(results: revisit.Results) -> dict[str, Any]:
    """Everything that an answer says, without names of clips and times."""
    return {
        record.question: (
            record.status,
            record.value,
            record.raw,
            record.label,
            record.reason,
            json.dumps(record.facts),
        )
        for record in results.records
    }


# Matroska counts in milliseconds: at 25 frames a second its times are exact.
@pytest.mark.slow
@pytest.mark.parametrize(
    "write, name, fps", [(write_png, "wall", 24), pytest.param(write_ffv1, "wall.mkv", 25, marks=pytest.mark.long)]
)
def test_frames_in_memory_score_as_the_same_frames_in_files(
    clip: np.ndarray, truth: np.ndarray, tmp_path: Path, write: Any, name: str, fps: float
) -> None:
    write(tmp_path / "clips/model" / name, clip)
    write(tmp_path / "truth" / name, truth)
    case: dict[str, Any] = {
        "id": "wall",
        "model": "model",
        "video": f"clips/model/{name}",
        "reference": f"truth/{name}",
    }
    case |= {"target": {"name": "target", "box": BOX}}
    (tmp_path / "manifest.jsonl").write_text(json.dumps(case) + "\n")
    files = revisit.evaluate(tmp_path / "manifest.jsonl", out=tmp_path / "run", workers=1)
    memory = revisit.score(clip, reference=truth, target=revisit.Target("target", BOX), fps=fps)
    assert answers(memory) == answers(files)
    assert sum(record.scored for record in memory.records) > 20
    for question in ("psnr", "motion_amount"):
        ours, theirs = (results.series(results.cases[0], question) for results in (memory, files))
        assert ours is not None and theirs is not None
        assert all(np.array_equal(ours[column], theirs[column]) for column in theirs.columns)


def test_a_run_is_loaded_as_it_was_evaluated(clip: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_png(tmp_path / "videos/model/a", clip)
    made = revisit.evaluate("videos", metrics=["psnr", "motion_amount"], workers=0)
    again = revisit.load("runs/videos")
    assert again.records == made.records and again.metrics == ["psnr", "motion_amount"]
    assert again.cell("psnr").unscored == {"no_reference": 1}
    with pytest.raises(UsageError, match="not a run"):
        revisit.load("videos")


def test_several_clips_and_their_references(clip: np.ndarray, truth: np.ndarray) -> None:
    both = revisit.score([clip, truth], reference=[truth, truth], metrics=["psnr"])
    named = revisit.score({"a": clip, "b": truth}, reference=truth, metrics=["psnr"])
    assert [record.value for record in both.records] == [record.value for record in named.records]
    assert [case.sample for case in named.cases] == ["a", "b"]
    assert both.scalars() == {"fidelity/psnr": both.cell("psnr").mean}
    with pytest.raises(UsageError, match="do not go together"):
        revisit.score({"a": clip}, reference={"b": truth}, metrics=["psnr"])


def test_tensors_are_frames(clip: np.ndarray, truth: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    shown = revisit.score(torch.from_numpy(clip), reference=torch.from_numpy(truth), metrics=["psnr", "ssim"])
    assert answers(shown) == answers(revisit.score(clip, reference=truth, metrics=["psnr", "ssim"]))


@pytest.mark.parametrize(
    "frames, said",
    [
        (np.zeros((3, 8, 8, 3)), "uint8"),
        (np.zeros((3, 3, 8, 8), np.uint8), "permute"),
        (np.zeros((8, 8, 3), np.uint8), r"\(count, height, width, 3\)"),
        (np.zeros((0, 8, 8, 3), np.uint8), r"\(count, height, width, 3\)"),
    ],
)
def test_what_are_no_frames_is_refused_with_what_to_do(frames: np.ndarray, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        revisit.score(frames)


def test_an_observer_is_called_on_frames_and_on_files(clip: np.ndarray, tmp_path: Path) -> None:
    path = write_ffv1(tmp_path / "a.mkv", clip)
    ours, theirs = revisit.observe(clip, "lite.lab"), revisit.observe(path, "lite.lab")
    assert np.array_equal(ours.mean, theirs.mean) and len(ours.index) > 1
    with pytest.raises(UsageError, match="no reference video was given"):
        revisit.observe(clip, "lite.fidelity")
    with pytest.raises(UsageError, match=r"did you mean lite\.lab"):
        revisit.observe(clip, "lite.labb")


def test_measures_are_those_of_scikit_image(clip: np.ndarray, truth: np.ndarray) -> None:
    metrics = pytest.importorskip("skimage.metrics")
    wanted = np.mean([metrics.peak_signal_noise_ratio(a, b) for a, b in zip(truth, clip, strict=True)])
    assert revisit.frame_psnr(clip, truth) == pytest.approx(wanted, abs=1e-9)
    options = {"channel_axis": -1, "gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}
    wanted = np.mean(
        [metrics.structural_similarity(a, b, data_range=255, **options) for a, b in zip(clip, truth, strict=True)]
    )
    assert revisit.frame_ssim(clip, truth) == pytest.approx(wanted, abs=1e-4)
    assert revisit.frame_mse(clip[0], truth[0]) == pytest.approx(metrics.mean_squared_error(clip[0], truth[0]))
    with pytest.raises(UsageError, match="one size"):
        revisit.frame_psnr(clip, truth[:, :32])


def test_libraries_of_the_process_are_left_as_they_were(clip: np.ndarray) -> None:
    import cv2

    cv2.setNumThreads(2)
    revisit.score(clip, metrics=["motion_amount"])
    assert cv2.getNumThreads() == 2


def test_the_import_brings_nothing_heavy() -> None:
    said = "import sys, revisit; print([m for m in ('numpy', 'cv2', 'av', 'yaml', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert set(revisit.__all__) <= set(dir(revisit))
    with pytest.raises(AttributeError, match="nothing called 'evalute'"):
        _ = revisit.evalute


SCRIPT = """
import revisit

results = revisit.evaluate("videos", metrics=["motion_amount", "flicker"], workers=2)
print(sorted(results.scalars()))
"""


@pytest.mark.long
def test_a_script_without_a_guard(clip: np.ndarray, tmp_path: Path) -> None:
    for take in range(3):
        write_png(tmp_path / f"videos/model/{take}", clip)
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['motion/flicker', 'motion/motion_amount']", done.stdout


@pytest.mark.slow
@pytest.mark.long
def test_the_notebook(tmp_path: Path) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    for library in ("ipykernel", "matplotlib", "pandas"):
        pytest.importorskip(library)
    book = nbformat.read(PROJECT / "examples/notebook.ipynb", as_version=4)
    nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [str(output) for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output for output in shown)
    assert any("mine.brightness" in output for output in shown)


@pytest.mark.long
def test_the_training_loop_logs_what_it_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard")
    pytest.importorskip("torch", reason="torch, whose SummaryWriter is used, is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.chdir(tmp_path)
    code = (PROJECT / "examples/training_loop.py").read_text().replace("count: int = 8", "count: int = 2")
    done = subprocess.run(
        [sys.executable, "-c", code, "log"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    log = EventAccumulator(str(tmp_path / "log")).Reload()
    psnr = [event.value for event in log.Scalars("revisit/psnr")]
    assert len(psnr) == 3 and psnr == sorted(psnr) and len(log.Scalars("revisit/memory")) == 3
    assert 0 < len(log.Scalars("revisit/memory_low")) <= 3  # two scenes do not always have an interval
    assert [path.name for path in tmp_path.iterdir()] == ["log"]  # and nothing else was written


def test_a_metric_of_ones_own_is_asked(clip: np.ndarray, tmp_path: Path) -> None:
    from revisit.evidence.appearance import LabStats

    @revisit.metric(
        id="test.lightness", version=1, title="Lightness", unit="L*", range=(0, 100), higher_is_better=None,
        needs=(LabStats,),
    )  # fmt: skip
    def lightness(lab: LabStats) -> revisit.Score:
        """Mean lightness."""
        return revisit.Score(float(lab.mean[:, 0].mean()))

    try:
        write_png(tmp_path / "videos/model/a", clip)
        memory = revisit.score(clip, metrics=["test.lightness"])
        files = revisit.evaluate(tmp_path / "videos", out=tmp_path / "run", metrics=["test.lightness"], workers=1)
        assert memory.records[0].value == files.records[0].value
    finally:
        METRICS._things.pop("test.lightness")


def test_arguments_of_other_types_are_refused_in_a_sentence(tmp_path):
    with pytest.raises(UsageError, match="no metric or group of metrics called 'psnrr'"):
        revisit.score(np.zeros((2, 8, 8, 3), np.uint8), metrics="psnrr")
    with pytest.raises(UsageError, match="called 'nonsense'; the groups of the suite"):
        revisit.score(np.zeros((2, 8, 8, 3), np.uint8), metrics="nonsense")
    with pytest.raises(UsageError, match="source is a path, or an iterator of samples, not 5"):
        revisit.evaluate(5, out=tmp_path / "run")
    with pytest.raises(UsageError, match="workers is a number of processes, or None for one per core, not 'two'"):
        revisit.evaluate(tmp_path, workers="two")
    for wrong, what in ((None, "NoneType"), ([1, 2, 3], r"shape \(3,\)")):
        with pytest.raises(
            UsageError, match=rf"clip: frames are an array \(count, height, width, 3\) of bytes, not {what}"
        ):
            revisit.score(wrong)


def test_a_model_that_no_clip_is_of_is_named():
    results = revisit.score(np.zeros((2, 16, 16, 3), np.uint8), metrics="flicker")
    assert repr(results).startswith("Results(1 clip of 1 model, ")
    with pytest.raises(KeyError, match="no clip here has model 'mine'; there is model"):
        results.mean("flicker")["mine"]
    with pytest.raises(KeyError, match="no clip here has model 'model'; there is none"):
        results.where(subset=["indoor"]).mean("flicker")["model"]
