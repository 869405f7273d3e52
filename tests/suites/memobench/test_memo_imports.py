"""Files of networks' outputs: every format gives the same evidence, and a bad file is refused in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from revisit.core import MediaError, from_arrays, to_arrays
from revisit.media import encode_mp4
from revisit.observers.sets import load_roles
from revisit.suites.memobench.evidence import Detections
from revisit.suites.memobench.imports import (
    aesthetic,
    depth,
    detections,
    image_quality,
    image_reward,
    tokens,
)
from tests.looking import wall, window

CSV = "\r\n".join(
    ["frame,coverage,score,prompt,maker", "0,0.1,0.9,a cup,sam", "0,0.6,0.4,a cup,sam", "1,,,a cup,sam", "3,0.2,0.7,,"]
)
JSON = {
    "prompt": "a cup",
    "maker": "sam",
    "frames": [
        {"frame": 0, "masks": [{"coverage": 0.1, "score": 0.9}, {"coverage": 0.6, "score": 0.4}]},
        {"frame": 1, "masks": []},
        {"frame": 3, "masks": [{"coverage": 0.2, "score": 0.7}]},
    ],
}
NPZ = {
    "frame": np.array([0, 0, 3]), "coverage": np.array([0.1, 0.6, 0.2]), "score": np.array([0.9, 0.4, 0.7]),
    "looked": np.array([0, 1, 3]), "prompt": np.array("a cup"), "maker": np.array("sam"),
}  # fmt: skip


def test_detections_are_the_same_from_every_format(tmp_path):
    (tmp_path / "a.csv").write_text(CSV, newline="")
    (tmp_path / "a.json").write_text(json.dumps(JSON))
    np.savez(tmp_path / "a.npz", **NPZ)
    for name in ("a.csv", "a.json", "a.npz"):
        found: Detections = detections.fn(tmp_path / name)
        assert found.index.tolist() == [0, 1, 3] and found.frame.tolist() == [0, 0, 3]
        assert found.coverage.tolist() == [0.1, 0.6, 0.2] and found.score.tolist() == [0.9, 0.4, 0.7]
        assert (found.prompt, found.maker, found.threshold) == ("a cup", "sam", 0)
        assert from_arrays(Detections, to_arrays(found)).prompt == "a cup"


def refuses(observer, path: Path, sentence: str) -> None:
    with pytest.raises(MediaError, match=sentence):
        observer.fn(path)


def test_bad_detections_are_refused_in_a_sentence(tmp_path):
    path = tmp_path / "a.csv"
    for text, sentence in (
        ("frame,score\n0,1\n", "a.csv: it has no column coverage; expected a CSV with the columns frame"),
        ("frame,coverage,score\n0,much,1\n", "row 0 has coverage = 'much', which is not a finite number"),
        ("frame,coverage,score\n0,50,1\n", "coverage ranges from 50 to 50; expected values from 0 to 1"),
        ("frame,coverage,score\n-1,0.5,1\n", "frame numbers must be 0, 1, 2"),
        ("frame,coverage,score,prompt\n0,0.5,1,a\n1,0.5,1,b\n", "has 2 different prompts"),
    ):
        path.write_text(text)
        refuses(detections, path, sentence)
    path = tmp_path / "a.json"
    for content, sentence in (
        ([1], "found a list"),
        ({"frames": 3}, "no list of frames"),
        ({"frames": [{"masks": 1}]}, "not a list of objects"),
        (
            {"frames": [{"frame": 0, "masks": [{"coverage": [0.1, 0.2], "score": 1}, {"coverage": 0.5, "score": 1}]}]},
            "row 0 has coverage = .*, which is not a finite number",
        ),
    ):
        path.write_text(json.dumps(content))
        refuses(detections, path, sentence)
    path.write_text("{")
    refuses(detections, path, "not a JSON document")
    np.savez(tmp_path / "b.npz", score=np.zeros(3))
    refuses(detections, tmp_path / "b.npz", "it holds score and no coverage; expected")


def test_values_come_from_csv_and_npz(tmp_path):
    (tmp_path / "v.csv").write_text("\ufeffframe, value,maker\r\n4,5.5,laion\r\n0,4.5,laion\r\n", newline="")
    np.savez(tmp_path / "v.npz", frame=[0, 4], value=[4.5, 5.5], maker="laion")
    for observer in (aesthetic, image_quality, image_reward):
        for name in ("v.csv", "v.npz"):
            found = observer.fn(tmp_path / name)
            assert (found.index.tolist(), found.value.tolist(), found.maker) == ([0, 4], [4.5, 5.5], "laion")
    (tmp_path / "w.csv").write_text("frame,value\n0,1\n0,2\n")
    refuses(aesthetic, tmp_path / "w.csv", "frame 0 occurs twice")
    (tmp_path / "w.csv").write_text("frame,value\n")
    refuses(aesthetic, tmp_path / "w.csv", "it has no frames")
    (tmp_path / "w.csv").write_bytes(b"\xff\xfe\x00")
    refuses(aesthetic, tmp_path / "w.csv", "not a UTF-8 text file")


def test_maps_and_descriptors_come_from_npz(tmp_path):
    np.savez(tmp_path / "d.npz", depth=np.arange(24.0).reshape(2, 3, 4), frame=[7, 2], inverse=False, maker="moge")
    found = depth.fn(tmp_path / "d.npz")
    assert (found.index.tolist(), found.inverse, found.maker) == ([2, 7], False, "moge")
    assert found.depth[1, 0, 1] == 1
    np.savez(tmp_path / "t.npz", tokens=np.ones((2, 3, 4, 8), np.float16))
    seen = tokens.fn(tmp_path / "t.npz")
    assert (seen.tokens.shape, seen.index.tolist(), seen.maker, seen.cropped) == (
        (2, 12, 8),
        [0, 1],
        "not stated",
        False,
    )
    np.savez(tmp_path / "e.npz", depth=np.ones((2, 3)))
    refuses(depth, tmp_path / "e.npz", r"its depth has shape \(2, 3\)")
    np.savez(tmp_path / "e.npz", tokens=np.full((2, 3, 4), np.nan))
    refuses(tokens, tmp_path / "e.npz", "not finite")
    np.savez(tmp_path / "e.npz", other=np.ones(3))
    refuses(depth, tmp_path / "e.npz", "it holds other and no depth; expected an npz with depth")
    np.savez(tmp_path / "e.npz", depth=np.ones((2, 3, 4)), frame=[1, 2, 3])
    refuses(depth, tmp_path / "e.npz", "has 3 frame numbers and 2 values")
    (tmp_path / "e.npz").write_bytes(b"no zip file")
    refuses(depth, tmp_path / "e.npz", "^e.npz: this is not an npz or npy file")  # which is named once


def test_descriptors_from_files_have_a_set_of_their_own():
    assert load_roles("imported")["identity_tokens"].id == "import.tokens"
    assert load_roles("lite")["identity_tokens"].id == "lite.identity"
    assert load_roles("lite")["detections"].id == "import.detections"


ASKED = (
    "visual_quality",
    "motion_smoothness",
    "identity",
    "geo3d",
    "image_reward",
    "ors",
    "aesthetic",
    "image_quality",
)


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """A clip of 40 frames beside its ground truth, its marks, and everything networks said of it."""
    root = tmp_path_factory.mktemp("memo")
    for model, shift in (("gt", 0), ("toy", 3)):
        shown = [window(wall(height=96), shift + 4 * min(k, 39 - k), 128) for k in range(40)]
        encode_mp4(root / f"clips/Nordic_001_{model}.mp4", shown, fps=16)
    (root / "marks.csv").write_text("video_folder,exits,re-enter\nNordic_001,14,25\n")
    for kind in ("detections", "depth", "tokens", "aesthetic", "image_quality", "image_reward"):
        (root / "files" / kind / "toy").mkdir(parents=True)
    at = {kind: root / "files" / kind / "toy/Nordic_001" for kind in ("detections", "depth", "tokens")}
    rows = "".join(f"{k},0.1,{0.8 if k % 2 else 0.3},a pig,sam3\n" for k in range(25, 40))
    at["detections"].with_suffix(".csv").write_text(f"frame,coverage,score,prompt,maker\n{rows}")
    np.savez(at["depth"].with_suffix(".npz"), depth=np.tile(np.arange(12.0).reshape(3, 4), (40, 1, 1)))
    np.savez(at["tokens"].with_suffix(".npz"), tokens=np.tile(np.eye(8)[:5], (40, 1, 1)), maker="dinov2")
    for kind, value in (("aesthetic", 4.6), ("image_quality", 0.5), ("image_reward", 0.0)):
        rows = "".join(f"{k},{value},net\n" for k in range(40))
        (root / f"files/{kind}/toy/Nordic_001.csv").write_text(f"frame,value,maker\n{rows}")
    return root


def test_every_formula_runs_end_to_end_from_files(source, revisit, tmp_path):
    """Values by hand: 2 of 5 and so on; the networks themselves are not run."""
    asked = [word for id in ASKED for word in ("-m", f"memo_{id}")]
    expected = {
        "corrected": {"visual_quality": 45, "identity": 100, "geo3d": 100, "image_reward": 50, "ors": 0.8 * 8 / 15},
        "upstream": {"visual_quality": 48, "identity": 100, "geo3d": 100, "image_reward": 50, "ors": 0.5667},
    }
    for protocol, values in expected.items():
        revisit(
            "eval", source / "clips", "--suite", "memobench", "--protocol", protocol, "--set", "imported", *asked,
            "--option", f"marks={source / 'marks.csv'}", "--option", f"evidence={source / 'files'}",
            "--out", tmp_path / protocol, "--no-report", "--workers", 0,
        )  # fmt: skip
        lines = (tmp_path / protocol / "records.jsonl").read_text().splitlines()
        toy = {r["metric"]: r for r in map(json.loads, lines) if "metric" in r and r["case"].endswith("@toy")}
        assert {r["status"] for r in toy.values()} == {"scored"}, toy
        assert {id: toy[f"memo_{id}"]["score"] for id in values} == pytest.approx(values, abs=1e-3)
        assert toy["memo_motion_smoothness"]["facts"]["step"] == 4
    assert toy["memo_ors"]["facts"]["prompt"] == "a pig"
    assert toy["memo_aesthetic"]["score"] == 4.6
