"""The command line as a user meets it: fast to start, JSON on request, exit codes that mean something."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("torch", "cv2", "av", "scipy", "matplotlib")


LIGHT = ("--help", "list metrics", "list observers", "show folder", "doctor", "cache path")


def test_light_verbs_import_nothing_heavy():
    code = (
        "import sys\n"
        "from revisit.cli.main import app\n"
        f"for words in {LIGHT!r}:\n"
        "    try: app(words.split())\n"
        "    except SystemExit: pass\n"
        f"    print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules])\n"
        "    if words == '--help': print('numpy' in sys.modules or 'not even numpy')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("HEAVY []") == len(LIGHT), done.stdout[-300:]
    assert "not even numpy" in done.stdout


def test_report_imports_nothing_heavy(revisit, make_clip, tmp_path):
    make_clip(tmp_path / "v/m/a.mp4")
    revisit("eval", "v", "-m", "motion_amount", "--workers", 0, "--no-report")
    code = (
        "import sys; sys.argv = ['revisit', 'report', 'runs/v']\n"
        "from revisit.cli.main import app\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        f"print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip().endswith("HEAVY []"), done.stdout[-300:]


@pytest.mark.parametrize("kind", ["suites", "metrics", "gates", "observers", "evidence", "sets"])
def test_every_listed_thing_has_a_card(revisit, kind):
    rows = json.loads(revisit("list", kind, "--json").stdout)
    assert rows
    for row in rows[:: max(1, len(rows) // 3)]:
        assert json.loads(revisit("show", row["id"], "--json").stdout)["id"] == row["id"]


def test_usage_errors_are_one_line_and_exit_2(revisit):
    for arguments in (["eval", "nowhere"], ["show", "nothing"], ["list", "things"], ["report", "nowhere"]):
        done = revisit(*arguments, check=2)
        assert done.stderr.startswith("revisit: ") and done.stderr.count("\n") == 1, done.stderr


def test_a_misspelt_name_is_helped(revisit, tmp_path, make_clip):
    make_clip(tmp_path / "v/a.mp4")
    assert "did you mean psnr" in revisit("eval", "v", "-m", "pnsr", check=2).stderr
    assert "lite, paper" in revisit("eval", "v", "--set", "tiny", check=2).stderr
    assert "has no protocol 'x'; there are corrected" in revisit("eval", "v", "--protocol", "x", check=2).stderr
    assert "--align takes auto" in revisit("eval", "v", "--align", "x", check=2).stderr
    assert "is not a limit" in revisit("eval", "v", "--limits", "x=1", check=2).stderr
    said = revisit("wbench", check=2).stderr
    assert "`revisit eval DATA --suite wbench` evaluates it" in said and "wrbench" not in said
    said = revisit("labels", "export", "runs/v/labels", check=2).stderr
    assert "`revisit annotate runs/v` collects labels" in said
    revisit("eval", "v", "-m", "flicker", "--no-report", "--workers", 0)
    said = revisit("compare", "runs/v", "vv", "x", check=2).stderr
    assert "'vv' is neither a run directory nor a model of the runs before it; did you mean v?" in said


def test_eval_report_score_cache_on_a_plain_folder(revisit, make_clip, tmp_path):
    for model in ("one", "two"):
        make_clip(tmp_path / f"videos/{model}/a b.mp4", seed=len(model), size=(96, 128))
    plan = json.loads(revisit("plan", "videos", "--json").stdout)
    assert len(plan["cases"]) == 2 and plan["missing"] == plan["evidence"] > 0
    done = revisit("eval", "videos", "--workers", 1, "--all")
    assert "report: " in done.stderr and (tmp_path / "runs/videos/report/index.html").is_file()
    assert "no reference video was given" in done.stderr
    assert revisit("plan", "videos").stderr.count("0 clips to decode") == 1
    limited = {"REVISIT_CACHE_LIMIT": "1kB"}
    assert "note: the cache holds" in revisit("eval", "videos", "--no-report", env=limited).stderr
    summary = json.loads(revisit("eval", "runs/videos", "--rescore", "--json").stdout)
    assert set(summary["models"]) == {"one", "two"}
    info = json.loads(revisit("cache", "info", "--json").stdout)
    assert info["files"] == plan["evidence"] and info["bytes"] > 0
    assert revisit("cache", "verify").stdout.startswith("0 damaged")
    assert json.loads(revisit("cache", "prune", "--all", "--yes", "--json").stdout)["removed"] == info["files"]
    assert revisit("report", "runs/videos").stdout.strip().endswith("index.html")


def test_import_scan_writes_a_manifest_that_eval_reads(revisit, make_clip, tmp_path):
    for name in ("a_gt", "a_mine"):
        make_clip(tmp_path / f"v/{name}.mp4", seed=len(name))
    revisit("import", "scan", "v", "--pattern", "{id}_{model}.mp4", "--reference", "gt")
    assert "exists; pass --force" in revisit("import", "scan", "v", check=2).stderr
    done = revisit("eval", "v", "-m", "psnr", "--json", "--no-report", "--workers", 0)
    scores = json.loads(done.stdout)["models"]
    assert scores["mine"]["scores"]["psnr"]["n"] == 1 and "gt" not in scores


@pytest.mark.parametrize("name", ["notes.txt", "manifest.jsonl"])
def test_a_source_of_which_nothing_can_be_used_makes_no_run(revisit, tmp_path, name):
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / name).write_text("two words\n" * 5)
    said = revisit("eval", f"v/{name}", check=2).stderr
    assert f"{name}: nothing in it can be used: {name} line 1: not JSON" in said and said.rstrip().endswith(
        "; and 2 more"
    )
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("roles: [a", "this is not YAML"),
        ("rolls: {lab_stats: lite.lab}", "unknown field 'rolls'"),
        ("- lite", "a set file needs"),
        ("extends: mine.yaml", "extends itself"),
        ("extends: nothing", "there is no observer set 'nothing'"),
        ("roles: {lab_stats: lite.nobody}", "lite.nobody"),
    ],
)
def test_a_set_that_cannot_be_read_is_one_sentence(revisit, tmp_path, content, words):
    (tmp_path / "mine.yaml").write_text(content)
    (tmp_path / "clips").mkdir()
    done = revisit("eval", "clips", "--set", "mine.yaml", check=2)
    assert words in done.stderr and "Traceback" not in done.stderr


def test_a_users_own_set_overrides_a_role(revisit, make_clip, tmp_path):
    make_clip(tmp_path / "v/a.mp4")
    (tmp_path / "mine.yaml").write_text("extends: lite\nroles: {lab_stats: lite.flow}\n")
    assert "has the observer lite.flow, which makes" in revisit("eval", "v", "--set", "mine.yaml", check=2).stderr
    (tmp_path / "mine.yaml").write_text("extends: lite\nroles: {lab_stats: lite.lab}\n")
    done = revisit("eval", "v", "-m", "motion_amount", "--set", "mine.yaml", "--no-report", "--json", "--workers", 0)
    assert json.loads(done.stdout)["set"] == "mine"


def test_doctor_says_what_is_there(revisit, monkeypatch):
    monkeypatch.setenv("REVISIT_CACHE", "/proc/nowhere")
    found = {check["name"]: check for check in json.loads(revisit("doctor", "--json", check=3).stdout)}
    assert found["pyav"]["state"] == found["opencv"]["state"] == "ok"
    assert "h264" in found["video decoders"]["finding"]
    (blocked,) = (check for check in found.values() if check["state"] == "bad")
    assert "set REVISIT_CACHE" in blocked["finding"]


def test_commands_of_benchmarks_are_commands_like_others(revisit):
    assert "Did you mean 'mbench'" in revisit("mbnch", check=2).stderr
    assert "Did you mean 'questions'" in revisit("judge", "qestions", check=2).stderr
    said = revisit("--help").stdout
    assert all(name in said for name in ("mbench", "memobench", "mind", "wrbench"))


def test_a_wrong_number_of_workers_leaves_a_run_as_it_is(revisit, make_clip, tmp_path):
    make_clip(tmp_path / "v/m/a.mp4")
    revisit("eval", "v", "-m", "motion_amount", "--workers", 0, "--no-report")
    before = {path: path.read_bytes() for path in (tmp_path / "runs/v").rglob("*") if path.is_file()}
    refused = revisit("eval", "v", "-m", "motion_amount", "--workers", -3, check=2)
    assert "--workers takes 0 (in this process) or a number of processes, not -3" in refused.stderr
    assert before == {path: path.read_bytes() for path in (tmp_path / "runs/v").rglob("*") if path.is_file()}
    assert "asked no judge" in revisit("judge", "replay", "runs/v", check=2).stderr


def test_the_demo_of_another_suite_has_no_rooms_to_choose(revisit):
    assert "rooms of the suite folder" in revisit("demo", "--suite", "mind", "--scenes", 3, check=2).stderr
