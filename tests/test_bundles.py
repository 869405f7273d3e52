"""Bundles: what is handed in can be scored again, what was changed is found, and nothing of the machine goes along."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from revisit.core import Case, Clip, Record, UsageError, load_all
from revisit.engine.bundles import Bundle, check_bundle, read_bundle
from revisit.report.site import boards_of, write_site
from revisit.results.files import case_to_json, to_line

load_all()
METRICS = "psnr,ssim,flicker,motion_smoothness,target_reappearance"


@pytest.fixture
def bundle(tmp_path: Path, make_clip: Callable[..., Path], revisit: Any) -> Path:
    lines = []
    for k in range(3):
        make_clip(tmp_path / f"videos/truth/{k}.mp4", seed=k + 20)
    for model in ("one", "two"):
        for k in range(3):
            make_clip(tmp_path / f"videos/{model}/{k}.mp4", seed=k + 5 * (model == "two"))
            lines.append({"id": f"s{k}", "model": model, "video": f"{model}/{k}.mp4", "reference": f"truth/{k}.mp4"})
    (tmp_path / "videos/manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    revisit("eval", tmp_path / "videos", "--out", tmp_path / "run", "--no-report", "--workers", 0, "-m", METRICS)
    revisit("bundle", "write", tmp_path / "run", "--out", tmp_path / "mine.zip")
    return tmp_path / "mine.zip"


def rewritten(path: Path, name: str, change: Callable[[bytes], bytes], honest: bool = True) -> Path:
    """A copy of a bundle with one file changed; `honest` puts the new digest into bundle.json, as a forger would."""
    import hashlib

    other = path.with_name(f"forged-{len(list(path.parent.iterdir()))}.zip")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w") as new:
        content = {entry: old.read(entry) for entry in old.namelist()}
        content[name] = change(content[name])
        about = json.loads(content["bundle.json"])
        if honest:
            about["files"][name] = hashlib.sha256(content[name]).hexdigest()
        content["bundle.json"] = json.dumps(about).encode()
        for entry, data in content.items():
            new.writestr(entry, data)
    return other


@pytest.mark.slow
def test_a_bundle_holds_and_a_raised_score_does_not(bundle: Path, tmp_path: Path, revisit: Any) -> None:
    sound = check_bundle(bundle)
    assert sound.problems == () and sound.unchecked == {} and sound.scores >= 9 * 5
    about = read_bundle(bundle).about
    assert about["models"] == ["one", "two"] and about["clips"] == 6  # the truth goes along, and is no model
    told = bundle.read_bytes()
    assert str(tmp_path).encode() not in told  # no path of this machine

    def raised(lines: bytes) -> bytes:
        records = [json.loads(line) for line in lines.splitlines()]
        first = next(record for record in records if record.get("metric") == "psnr" and record["model"] == "two")
        first["score"] += 1.5
        return "".join(json.dumps(record) + "\n" for record in records).encode()

    forged = rewritten(bundle, "records.jsonl", raised)
    found = check_bundle(forged)
    assert len(found.problems) == 1 and "psnr is claimed as" in found.problems[0]
    assert "does not hold" in revisit("bundle", "check", forged, check=1).stdout
    with pytest.raises(UsageError, match="changed or damaged"):
        read_bundle(rewritten(bundle, "records.jsonl", raised, honest=False))

    def posed(lines: bytes) -> bytes:  # a clip that could not be scored, claimed as scored
        records = [json.loads(line) for line in lines.splitlines()]
        first = next(record for record in records if record.get("metric") and record["status"] == "unscored")
        first |= {"status": "scored", "score": 0.99, "raw": None}
        return "".join(json.dumps(record) + "\n" for record in records).encode()

    assert "has no score" in check_bundle(rewritten(bundle, "records.jsonl", posed)).problems[0]

    page = Path(revisit("bundle", "site", bundle, "--out", tmp_path / "site").stdout.strip()).read_text()
    assert "one" in page and "two" in page and "made again from evidence" in page and "<th" in page
    again = tmp_path / "again.zip"
    revisit("bundle", "write", tmp_path / "run", "--out", again)
    assert again.read_bytes() == told
    both = Path(revisit("bundle", "site", bundle, again, "--no-check", "--out", tmp_path / "two").stdout.strip())
    assert "two (mine)" in both.read_text() and "two (again)" in both.read_text()  # a name in two bundles


def test_files_that_are_no_bundles_are_refused(tmp_path: Path) -> None:
    plain = tmp_path / "x.zip"
    plain.write_bytes(b"nothing")
    with pytest.raises(UsageError, match="cannot be read as a bundle"):
        read_bundle(plain)
    with zipfile.ZipFile(plain, "w") as archive:
        archive.writestr("bundle.json", json.dumps({"schema": 1, "files": {"../../etc/passwd": "0"}}))
        archive.writestr("../../etc/passwd", "x")
    with pytest.raises(UsageError, match="files that a bundle does not have"):
        read_bundle(plain)
    with zipfile.ZipFile(plain, "w") as archive:
        archive.writestr("bundle.json", json.dumps({"schema": 99}))
    with pytest.raises(UsageError, match="schema"):
        read_bundle(plain)
    with pytest.raises(UsageError, match="no such bundle"):
        read_bundle(tmp_path / "none.zip")


def test_a_board_shows_what_counts_and_names_are_text(tmp_path: Path) -> None:
    """A reset that looks like a return stands behind who went on; the truth travels along, and is no model."""
    hostile = "<img src=x onerror=alert(1)>\x1b[31m\u202ereset"
    outcomes = {hostile: 0.05, "goes on": 0.9}
    cases, lines = [], []
    for k in range(6):
        truth = Clip(Path(f"{k}/truth.mp4"))
        for model in (*outcomes, "truth"):
            is_truth = model == "truth"
            clip = truth if is_truth else Clip(Path(f"{model}/{k}.mp4"))
            one = Case(f"{k}@{model}", "folder", model, f"s{k}", clip, None if is_truth else truth, truth=is_truth)
            cases.append(one)
            scores = {"target_reappearance": 1.0} | ({} if is_truth else {"event_outcome": outcomes[model] + 0.01 * k})
            lines += [to_line(Record(one, id, False, "scored", value)) for id, value in scores.items()]
    about = {
        "suite": "folder", "protocol": "corrected", "hash": "aa", "set": "lite", "dataset": "<b>set</b>", "clips": 12,
        "models": list(outcomes), "revisit": "0.1.0",
    }  # fmt: skip
    plan = {"suite": "folder", "cases": [case_to_json(one) for one in cases], "rejected": []}
    bundle = Bundle(tmp_path / f"{hostile.replace('/', '')}.zip", about, {"environment": {}}, plan, tuple(lines))
    (board,) = boards_of([bundle])
    shown = {row.model: row.cells["target_reappearance"].mean for row in board.rows}
    assert shown == {hostile: pytest.approx(0.075), "goes on": 1.0}
    page = write_site([bundle], tmp_path / "site").read_text(encoding="utf-8")
    assert "<img" not in page and "<b>" not in page and "\x1b" not in page and "\u202e" not in page
    assert "&lt;img src=x" in page
