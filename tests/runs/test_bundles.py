"""Bundles: what is handed in can be scored again, what was changed is found, and nothing of the machine goes along."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import Case, Clip, Record, UsageError, import_registering_modules
from revisit.engine.dependencies import short_hash
from revisit.engine.resume import hash_of_metrics_and_gates
from revisit.report.site import boards_of_bundles, write_site
from revisit.results.record_files import case_to_json, record_to_line
from revisit.runs.bundles import Bundle, dataset_fingerprint, read_bundle
from tests.conftest import in_this_process, moving_frames
from tests.painted_datasets import memobench
from tests.suites.memobench.test_suite_memobench import generated, make_dataset

import_registering_modules()
METRICS = "psnr,ssim,flicker,motion_smoothness,scene_cuts,camera_standstill,target_reappearance"
Content = dict[str, bytes]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run of two models on three scenes, with the bundle `mine.zip` beside it; one clip cannot be read."""
    from revisit.media import encode_mp4

    folder = tmp_path_factory.mktemp("bundles")
    lines = []
    for k in range(3):
        (folder / "videos/truth").mkdir(parents=True, exist_ok=True)
        encode_mp4(folder / f"videos/truth/{k}.mp4", moving_frames(seed=k + 20), fps=8)
        for model in ("one", "two"):
            (folder / "videos" / model).mkdir(parents=True, exist_ok=True)
            encode_mp4(folder / f"videos/{model}/{k}.mp4", moving_frames(seed=k + 5 * (model == "two")), fps=8)
            lines.append({"id": f"s{k}", "model": model, "video": f"{model}/{k}.mp4", "reference": f"truth/{k}.mp4"})
    (folder / "videos/manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REVISIT_CACHE", str(folder / "cache"))
        patch.chdir(folder)
        done = in_this_process(["eval", "videos", "--out", "run", "--no-report", "--workers", "0", "-m", METRICS])
        assert done.returncode == 0, done.stderr
        assert in_this_process(["bundle", "write", "run", "--out", "mine.zip"]).returncode == 0
    yield folder


@pytest.fixture
def bundle(run: Path) -> Path:
    return run / "mine.zip"


def rewritten(path: Path, out: Path, change: Callable[[Content], None], honest: bool = True) -> Path:
    """A copy of a bundle with files changed; `honest` puts new digests into bundle.json, as a forger would."""
    with zipfile.ZipFile(path) as old:
        content = {entry: old.read(entry) for entry in old.namelist()}
    change(content)
    about = json.loads(content["bundle.json"])
    if honest:
        about["files"] = {name: hashlib.sha256(part).hexdigest() for name, part in content.items() if name != ABOUT}
    content[ABOUT] = json.dumps(about).encode()
    with zipfile.ZipFile(out, "w") as new:
        for entry, data in content.items():
            new.writestr(entry, data)
    return out


ABOUT = "bundle.json"


def lines_of(content: Content) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content["records.jsonl"].splitlines()]


def put_lines(content: Content, lines: list[dict[str, Any]]) -> None:
    content["records.jsonl"] = "".join(json.dumps(line) + "\n" for line in lines).encode()


def edited(content: Content, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a JSON file of a bundle; nothing where the bundle does not have it."""
    if name in content:
        said = json.loads(content[name])
        change(said)
        content[name] = json.dumps(said).encode()


def is_about(line: dict[str, Any], metric: str, model: str = "two", sample: str = "s0") -> bool:
    return line.get("metric") == metric and (line["model"], line["sample"]) == (model, sample)


def without(content: Content, drop: Callable[[dict[str, Any]], bool]) -> None:
    put_lines(content, [line for line in lines_of(content) if not drop(line)])


def drop_zeros(content: Content) -> None:
    without(content, lambda line: line.get("score") == 0)


def drop_unscored(content: Content) -> None:
    without(content, lambda line: line["model"] == "two" and line["status"] == "unscored")


def drop_case_from_records(content: Content) -> None:
    without(content, lambda line: line["case"].startswith("s1@two"))


def drop_case(content: Content) -> None:
    """As somebody does who knows the files: the case goes out of the plan, too."""
    drop_case_from_records(content)
    edited(content, "plan.json", lambda plan: plan.update(cases=[c for c in plan["cases"] if c["id"] != "s1@two#0"]))
    edited(content, ABOUT, lambda about: about.update(clips=5))


def drop_metric(content: Content) -> None:
    without(content, lambda line: line.get("metric") == "ssim")


def double(content: Content) -> None:
    lines = lines_of(content)
    put_lines(content, [*lines, next(line for line in lines if is_about(line, "psnr"))])


def add_case(content: Content) -> None:
    lines = lines_of(content)
    put_lines(content, [*lines, {**lines[-1], "case": "s9@two#0", "sample": "s9"}])


def rename_model(content: Content) -> None:
    lines = lines_of(content)
    next(line for line in lines if is_about(line, "psnr"))["model"] = "one"
    put_lines(content, lines)


def raise_version(content: Content) -> None:
    lines = lines_of(content)
    for line in lines:
        if line.get("metric") == "psnr":
            line |= {"version": 99, "score": 99.0}
    put_lines(content, lines)


def borrow_evidence(content: Content) -> None:
    """The clip of one scene is scored by what was seen in another; the answers are copied along."""

    def swap(plan: dict[str, Any]) -> None:
        cases = {case["id"]: case for case in plan["cases"]}
        cases["s0@two#0"]["evidence"] = cases["s1@two#0"]["evidence"]

    edited(content, "plan.json", swap)
    lines = lines_of(content)
    for line in lines:
        if line["case"] == "s0@two#0":
            other = next(
                one
                for one in lines
                if one["case"] == "s1@two#0"
                and [one.get("metric"), one.get("gate")] == [line.get("metric"), line.get("gate")]
            )
            line |= {name: other[name] for name in ("score", "raw", "status", "facts", "key") if name in other}
    put_lines(content, lines)


def loosen(content: Content) -> None:
    """Other parameters in run.json than the protocol was made with."""
    edited(
        content,
        "run.json",
        lambda run: run["protocol"]["parameters"].setdefault("scene_cuts", {}).update(threshold=0.9),
    )


def fail_on_purpose(content: Content) -> None:
    """A clip with a low score, claimed to have failed: what failed is in no mean."""
    lines = lines_of(content)
    line = next(line for line in lines if is_about(line, "psnr"))
    for name in ("score", "raw"):
        del line[name]
    line |= {"status": "failed", "reason": {"kind": "failed", "sentence": "broken file"}}
    put_lines(content, lines)


def excuse(content: Content) -> None:
    """Another reason than the one that came out."""
    lines = lines_of(content)
    line = next(line for line in lines if line["status"] == "unscored")
    line["reason"]["kind"] = "unreadable"
    put_lines(content, lines)


FORGERIES = (
    drop_zeros, drop_unscored, drop_case_from_records, drop_case, drop_metric, double, add_case, rename_model,
    raise_version, borrow_evidence, fail_on_purpose, excuse,
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "forgery", [*FORGERIES[:4], *(pytest.param(one, marks=pytest.mark.long) for one in FORGERIES[4:])]
)
def test_what_is_dropped_doubled_or_changed_is_found(
    bundle: Path, tmp_path: Path, revisit: Any, forgery: Callable[[Content], None]
) -> None:
    forged = rewritten(bundle, tmp_path / "forged.zip", forgery)
    told = revisit("bundle", "check", forged, check=None)
    assert told.returncode == 1 and "does not hold" in told.stdout, told.stdout + told.stderr
    assert revisit("bundle", "site", forged, check=None).returncode == 2  # and no page shows it


@pytest.mark.slow
def test_parameters_that_the_protocol_does_not_have_are_found(bundle: Path, tmp_path: Path, revisit: Any) -> None:
    told = revisit("bundle", "check", rewritten(bundle, tmp_path / "forged.zip", loosen), check=1)
    assert "params.threshold of scene_cuts in run.json" in told.stderr

    def former(content: Content) -> None:  # without planned.json nobody can tell whether the parameters were changed
        loosen(content)
        content.pop("planned.json", None)
        edited(content, ABOUT, lambda about: about.update(schema=1))

    told = revisit("bundle", "check", rewritten(bundle, tmp_path / "former.zip", former), check=3)
    assert "holds in part" in told.stdout and "not checked: scene_cuts" in told.stderr


@pytest.mark.parametrize("change", [{"clips": 600}, {"models": ["two"]}, {"hash": "00000000"}, {"set": "paper"}])
def test_a_changed_summary_is_found(bundle: Path, tmp_path: Path, revisit: Any, change: dict[str, Any]) -> None:
    forged = rewritten(
        bundle, tmp_path / "forged.zip", lambda content: edited(content, ABOUT, lambda a: a.update(change))
    )
    assert next(iter(change)) in revisit("bundle", "check", forged, check=1).stderr


@pytest.mark.parametrize(("file", "name"), [("planned.json", "questions"), ("planned.json", "files"), ("run.json", "")])
def test_a_bundle_without_what_its_check_needs_is_refused(
    bundle: Path, tmp_path: Path, revisit: Any, file: str, name: str
) -> None:
    def forget(content: Content) -> None:
        edited(content, file, lambda entry: entry.pop(name) if name else entry["protocol"].pop("observers"))

    told = revisit("bundle", "check", rewritten(bundle, tmp_path / "forged.zip", forget), check=1)
    assert f"do not say {name or 'observers'}" in told.stderr


def another_version(content: Content) -> None:
    """As a later Revisit would hand it in: version 99 of a metric, under a protocol and with scores of its own."""
    tag, id = "corrected:99999999", "camera_standstill"
    lines = lines_of(content)
    for line in lines:
        if line.get("metric") == id:
            line |= {"version": 99, "protocol": tag, **({"score": 99.0} if line["status"] == "scored" else {})}
    put_lines(content, lines)
    edited(content, "plan.json", lambda plan: plan["metrics"].update({id: tag}))
    promise = {"kind": "metric", "version": 99, "protocol": tag, "facts": None}
    edited(content, "planned.json", lambda planned: planned["questions"].update({id: promise}))
    edited(content, ABOUT, lambda about: about.update(hash=hash_of_metrics_and_gates(json.loads(content["plan.json"]))))


def unknown_metric(content: Content) -> None:
    """As somebody hands it in who has a plugin that is not installed here."""
    for name in ("plan.json", "planned.json", "records.jsonl"):
        content[name] = content[name].replace(b'"psnr"', b'"our_psnr"')
    if "planned.json" in content:
        promised = json.loads(content["planned.json"])["questions"]["our_psnr"]
        tag = f"corrected:{short_hash(promised['facts'])}"
        for name in ("plan.json", "planned.json", "records.jsonl"):
            content[name] = content[name].replace(promised["protocol"].encode(), tag.encode())
    edited(content, ABOUT, lambda about: about.update(hash=hash_of_metrics_and_gates(json.loads(content["plan.json"]))))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "metric"),
    [(another_version, "camera_standstill"), (unknown_metric, "our_psnr")],
    ids=["version", "plugin"],
)
def test_what_cannot_be_made_again_here_is_told_by_metric(
    bundle: Path, tmp_path: Path, revisit: Any, change: Callable[[Content], None], metric: str
) -> None:
    other = rewritten(bundle, tmp_path / "other.zip", change)
    told = revisit("bundle", "check", other, check=None)
    assert told.returncode == 3 and "holds;" not in told.stdout and f"not checked: {metric}: it " in told.stderr
    said = json.loads(revisit("bundle", "check", other, "--json", check=None).stdout)[str(other)]
    assert list(said["not_checked"]) == [metric] and said["problems"] == []
    assert said["scores"] == said["planned"] - sum(said["unchecked"].values())


@pytest.mark.slow
def test_a_page_keeps_checked_and_unchecked_numbers_apart(bundle: Path, tmp_path: Path, revisit: Any) -> None:
    other = rewritten(bundle, tmp_path / "other.zip", another_version)
    shown = revisit("bundle", "site", other, "--out", tmp_path / "site")
    page = Path(shown.stdout.strip()).read_text(encoding="utf-8")
    assert "not checked" in page and "camera_standstill is shown as not checked" in shown.stderr
    from revisit.runs.bundle_check import check_bundle

    (board,) = boards_of_bundles([read_bundle(other)], {"other": check_bundle(other)})
    unsure = [column for column in board.columns if column.title.endswith("not checked")]
    assert unsure and all(column.higher_is_better is None for column in unsure)  # neither sorted nor marked as best
    for row in board.rows:
        means = {key: cell.mean for key, cell in row.cells.items()}
        assert means.pop("camera_standstill.unchecked") == 99 and 99 not in means.values()
    nobody = Path(revisit("bundle", "site", bundle, "--no-check", "--out", tmp_path / "no").stdout.strip()).read_text()
    sure = Path(revisit("bundle", "site", bundle, "--out", tmp_path / "yes").stdout.strip()).read_text()
    assert ", not checked" in nobody and ", not checked" not in sure


@pytest.mark.slow
def test_a_bundle_from_before_planned_json_is_checked_as_far_as_it_goes(
    bundle: Path, tmp_path: Path, revisit: Any
) -> None:
    def former(content: Content) -> None:
        content.pop("planned.json", None)
        edited(content, ABOUT, lambda about: about.update(schema=1))

    old = rewritten(bundle, tmp_path / "old.zip", former)
    told = revisit("bundle", "check", old)
    assert "holds; " in told.stdout and "written before bundles said what was planned" in told.stderr
    for forgery in (drop_zeros, raise_version, borrow_evidence):
        forged = rewritten(old, tmp_path / "forged.zip", forgery)
        assert "does not hold" in revisit("bundle", "check", forged, check=1).stdout, forgery.__name__
    stripped = rewritten(bundle, tmp_path / "stripped.zip", lambda content: content.pop("planned.json", None) and None)
    assert "planned.json" in revisit("bundle", "check", stripped, check=1).stderr


@pytest.mark.slow
def test_a_bundle_written_without_the_files_says_what_that_leaves_open(tmp_path: Path, revisit: Any) -> None:
    """Neither videos nor poses are needed to check; only the bundle of a run whose poses are gone cannot name them."""
    make_dataset(tmp_path)
    generated(tmp_path / "videos/mine")
    revisit(
        "eval", "videos", "--suite", "memobench", "--option", "gt=data", "--out", "run", "-m", "true_turn",
        "--no-report", "--no-truth", "--workers", 0,
    )  # fmt: skip
    revisit("bundle", "write", "run", "--out", "whole.zip")
    shutil.rmtree(tmp_path / "data")
    shutil.rmtree(tmp_path / "videos")
    whole = revisit("bundle", "check", "whole.zip")
    assert "whole.zip: holds; 2 of 2" in whole.stdout and "not checked" not in whole.stderr
    revisit("bundle", "write", "run", "--out", "later.zip")
    later = revisit("bundle", "check", "later.zip")
    assert (
        "note: that true_pose_track belongs to its clip is not checked for 2 clips: the bundle has no" in later.stderr
    )


@pytest.mark.slow
def test_a_clip_that_one_model_lacks_counts_in_its_coverage(bundle: Path, tmp_path: Path, revisit: Any) -> None:
    """Dropped without a trace in the files: the other model has it, so the page says that it is missing."""

    def dropped(content: Content) -> None:
        drop_case(content)
        edited(content, "plan.json", lambda plan: plan.update(total_cases=5))
        edited(content, "planned.json", lambda planned: planned["asked"].pop("s1@two#0"))

    other = rewritten(bundle, tmp_path / "other.zip", dropped)
    assert "two has no clip of 1 of the 3" in revisit("bundle", "check", other).stderr
    (board,) = boards_of_bundles([read_bundle(other)])
    counts = {row.model: {(cell.n, cell.of) for cell in row.cells.values() if cell.of} for row in board.rows}
    assert {of for _, of in counts["two"]} == {3} and max(n for n, _ in counts["two"]) == 2


@pytest.mark.slow
def test_a_run_with_a_broken_clip_is_handed_in_whole(run: Path, tmp_path: Path, revisit: Any, own_cache: Path) -> None:
    """What failed goes along as failed: nobody has to drop it first."""
    videos = tmp_path / "videos"
    for k in range(2):
        target = videos / f"m/{k}.mp4"
        target.parent.mkdir(parents=True, exist_ok=True)
        content = (run / f"videos/one/{k}.mp4").read_bytes()
        target.write_bytes(content if k else content[: len(content) // 2])
    revisit("eval", videos, "--out", "run", "--no-report", "--workers", 0, "-m", "flicker,scene_cuts", check=1)
    revisit("bundle", "write", "run", "--out", "broken.zip")
    told = revisit("bundle", "check", "broken.zip")
    assert "it failed when it was made" in told.stderr and "holds" in told.stdout
    lines = (tmp_path / "run/records.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "run/records.jsonl").write_text("".join(lines[:-1]))
    assert "lacks 1 of the" in revisit("bundle", "write", "run", "--out", "part.zip", check=2).stderr


@pytest.mark.slow
def test_a_bundle_holds_and_a_raised_score_does_not(bundle: Path, run: Path, tmp_path: Path, revisit: Any) -> None:
    sound = json.loads(revisit("bundle", "check", bundle, "--json").stdout)[str(bundle)]
    assert sound["problems"] == [] and sound["unchecked"] == {} and sound["scores"] >= 9 * 7
    assert sound.get("planned") == sound["scores"]
    about = read_bundle(bundle).about
    assert about["models"] == ["one", "two"] and about["clips"] == 6  # the truth goes along, and is no model
    told = bundle.read_bytes()
    assert str(run).encode() not in told  # no path of this machine

    def raised(content: Content) -> None:
        lines = lines_of(content)
        next(line for line in lines if is_about(line, "psnr"))["score"] += 1.5
        put_lines(content, lines)

    forged = rewritten(bundle, tmp_path / "raised.zip", raised)
    found = revisit("bundle", "check", forged, check=1)
    assert (
        "does not hold" in found.stdout and found.stderr.count("differs:") == 1 and "psnr is claimed as" in found.stderr
    )
    with pytest.raises(UsageError, match="changed or damaged"):
        read_bundle(rewritten(bundle, tmp_path / "damaged.zip", raised, honest=False))

    def posed(content: Content) -> None:  # a clip that could not be scored, claimed as scored
        lines = lines_of(content)
        first = next(line for line in lines if line.get("metric") and line["status"] == "unscored")
        first |= {"status": "scored", "score": 0.99, "raw": None}
        put_lines(content, lines)

    claimed = rewritten(bundle, tmp_path / "posed.zip", posed)
    assert "has no score" in revisit("bundle", "check", claimed, check=1).stderr

    page = Path(revisit("bundle", "site", bundle, "--out", tmp_path / "site").stdout.strip()).read_text()
    assert "one" in page and "two" in page and "made again from evidence" in page and "<th" in page
    again = tmp_path / "again.zip"
    revisit("bundle", "write", run / "run", "--out", again)
    assert again.read_bytes() == told
    both = Path(revisit("bundle", "site", bundle, again, "--no-check", "--out", tmp_path / "two").stdout.strip())
    assert "two (mine)" in both.read_text() and "two (again)" in both.read_text()  # a name in two bundles


def test_a_truth_that_is_no_ceiling_is_handed_in_as_it_was_scored(tmp_path: Path, revisit: Any) -> None:
    """Poses came with the model's clip, and odometry followed the truth's camera: its score is there, and not shown."""
    data = memobench(tmp_path, clips=1)
    clip = tmp_path / "output/mine/Real/007"
    clip.mkdir(parents=True)
    shutil.copy(data / "Real_Raw/007/007.mp4", clip / "video.mp4")
    with np.load(data / "Real_Raw/007/raw/007_mapanything.npz") as true_poses:
        np.savez(clip / "poses.npz", poses=true_poses["cam_c2w"])
    asked = ("-m", "memo_camera", "--no-report", "--workers", 0, "--out", tmp_path / "run")
    done = revisit("eval", tmp_path / "output", "--option", f"gt={data}", *asked)
    assert "the truth has no score of camera controllability" in done.stdout + done.stderr
    assert revisit("bundle", "write", tmp_path / "run", "--out", tmp_path / "mine.zip").returncode == 0
    checked = revisit("bundle", "check", tmp_path / "mine.zip")
    assert checked.returncode == 0 and "mine.zip: holds" in checked.stdout, checked.stdout


def test_files_that_are_no_bundles_are_refused(tmp_path: Path) -> None:
    plain = tmp_path / "x.zip"
    plain.write_bytes(b"nothing")
    with pytest.raises(UsageError, match=r"x\.zip: this is not a zip file"):
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


def test_models_of_two_bundles_are_ranked_on_the_clips_that_both_have() -> None:
    """Each hands in a bundle of a model of its own: their clips have the same names, and are compared."""
    from revisit.runs.bundle_check import BundleCheck

    def made(name: str, levels: dict[str, float], **annotations: str) -> Bundle:
        cases = [
            Case(f"{k}@{m}#0", "folder", m, f"s{k}", Clip(Path(f"{m}{k}.mp4")), annotations=annotations)
            for m in levels
            for k in range(6)
        ]
        lines = [
            record_to_line(Record(one, "event_outcome", False, "scored", levels[one.model] + 0.003 * (k % 6) ** 2))
            for k, one in enumerate(cases)
        ]
        about = {
            "suite": "folder", "protocol": "corrected", "hash": "aa", "set": "lite", "dataset": "one",
            "models": list(levels),
        }  # fmt: skip
        plan = {"suite": "folder", "cases": [case_to_json(one) for one in cases], "rejected": []}
        return Bundle(Path(f"{name}.zip"), about, {"environment": {}}, plan, tuple(lines))  # type: ignore[arg-type]

    bundles = [made("theirs", {"good": 0.8}), made("ours", {"bad": 0.1, "middling": 0.5}), made("third", {"bad": 0.3})]
    (board,) = boards_of_bundles(bundles, {bundle.name: BundleCheck(1) for bundle in bundles})
    places = {row.model: row.cells["event_outcome.places"] for row in board.rows}
    assert {model: place.mean for model, place in places.items()} == {
        "good": 1, "middling": 2, "bad (third)": 3, "bad (ours)": 4,
    }  # fmt: skip
    assert places["good"].text == "1" and places["middling"].text == "2–4"
    still = made("still", {"still": 0.9}, category="floor")  # a baseline without memory has no place, however good
    (board,) = boards_of_bundles([bundles[0], still], {bundle.name: BundleCheck(1) for bundle in (bundles[0], still)})
    shown = {row.label: row.cells["event_outcome.places"].mean for row in board.rows}
    assert shown == {"good": 1, "still (floor)": None}


def test_bundles_that_lack_clips_share_a_board_with_those_that_have_them() -> None:
    """Bundles are linked by common clips with the same references, in any order; nothing else joins datasets."""

    def handed_in(name: str, references: dict[str, str]) -> Bundle:
        cases = [Case(f"{clip}@{name}#0", "folder", name, clip, Clip(Path(f"{clip}.mp4"))) for clip in references]
        lines = [record_to_line(Record(one, "event_outcome", False, "scored", 0.5)) for one in cases]
        entries = [
            {**case_to_json(one), "reference_digest": digest or None}
            for one, digest in zip(cases, references.values(), strict=True)
        ]
        plan: Any = {"suite": "folder", "protocol": "corrected", "cases": entries, "rejected": []}
        about = {
            "suite": "folder", "protocol": "corrected", "hash": "aa", "set": "lite", "models": [name],
            "dataset": dataset_fingerprint(plan),
        }  # fmt: skip
        return Bundle(Path(f"{name}.zip"), about, {"environment": {}}, plan, tuple(lines))  # type: ignore[arg-type]

    left, right = handed_in("left", {"a": "1", "b": "2"}), handed_in("right", {"c": "3", "d": ""})
    whole = handed_in("whole", {"a": "1", "b": "2", "c": "3", "d": ""})
    for order in ([left, right, whole], [whole, right, left], [left, whole, right]):
        (board,) = boards_of_bundles(order)
        assert board.title == f"folder, dataset {whole.about['dataset']}"
        cells = {row.model: row.cells["event_outcome.unchecked"] for row in board.rows}
        assert {model: (cell.n, cell.of) for model, cell in cells.items()} == {
            "left": (2, 4), "right": (2, 4), "whole": (4, 4),
        }  # fmt: skip
    assert len(boards_of_bundles([left, right])) == 2  # without a clip in common
    swapped = handed_in("swapped", {"a": "2", "b": "1"})
    assert len(boards_of_bundles([left, swapped])) == 2
    assert len(boards_of_bundles([whole, handed_in("other", {"c": "3", "d": "4"})])) == 2


def test_a_board_shows_what_counts_and_names_are_text(tmp_path: Path) -> None:
    """A reset that looks like a return stands behind who went on; the truth travels along, and is no model."""
    from revisit.runs.bundle_check import BundleCheck

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
            lines += [record_to_line(Record(one, id, False, "scored", value)) for id, value in scores.items()]
    about = {
        "suite": "folder", "protocol": "corrected", "hash": "aa", "set": "lite", "dataset": "<b>set</b>", "clips": 12,
        "models": list(outcomes), "revisit": "0.1.0",
    }  # fmt: skip
    plan = {"suite": "folder", "cases": [case_to_json(one) for one in cases], "rejected": []}
    bundle = Bundle(tmp_path / f"{hostile.replace('/', '')}.zip", about, {"environment": {}}, plan, tuple(lines))
    (board,) = boards_of_bundles([bundle], {bundle.name: BundleCheck(1)})
    shown = {row.model: row.cells["target_reappearance.held"].mean for row in board.rows}
    assert shown == {hostile: pytest.approx(0.075), "goes on": 1.0}
    page = write_site([bundle], tmp_path / "site").read_text(encoding="utf-8")
    assert "<img" not in page and "<b>" not in page and "\x1b" not in page and "\u202e" not in page
    assert "&lt;img src=x" in page


def test_a_bundle_from_before_targets_were_part_of_addresses_holds(
    make_clip: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from revisit.engine.plan import Plan

    for seed, name in enumerate(("clip", "truth")):
        make_clip(tmp_path / f"videos/{name}.mp4", seed=seed)
    target = {"name": "cup", "box": [0.2, 0.2, 0.8, 0.8]}
    entry = {"id": "a", "video": "clip.mp4", "reference": "truth.mp4", "target": target}
    (tmp_path / "videos/manifest.jsonl").write_text(json.dumps(entry))
    monkeypatch.chdir(tmp_path)
    for name in ("before", "now"):
        with monkeypatch.context() as patch:
            if name == "before":
                patch.setattr(Plan, "checks_reading_target", frozenset())
            asked = ["eval", "videos", "--out", name, "--no-report", "--workers", "0", "-m", "target_in_view,psnr"]
            assert in_this_process(asked).returncode == 0
        assert in_this_process(["bundle", "write", name, "--out", f"{name}.zip"]).returncode == 0
        assert in_this_process(["bundle", "check", f"{name}.zip"]).returncode == 0
