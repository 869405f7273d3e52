"""`revisit view`: the page of a run that may be going, and nothing else of this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from revisit.report.live_server import make_live_application
from tests.report.test_report import Page
from tests.run_directories import GATE, METRIC, make_scenes
from tests.web.test_web_player import numbered

pytest.importorskip("starlette", reason="needs starlette (pip install 'revisit-bench[annotate]')")


def client(*runs: Path, copies: Path) -> Any:
    from starlette.testclient import TestClient

    from revisit.web.server import Guard, ListenAddress

    return TestClient(
        Guard(make_live_application(runs, copies), ListenAddress().allowed_host_names), base_url="http://127.0.0.1"
    )


def test_a_page_with_its_scenes_pictures_and_videos(tmp_path: Path) -> None:
    numbered(tmp_path / "clip.mp4", 97, 24)
    run = make_scenes(tmp_path, ["a", "b"], ["one"], video=tmp_path / "clip.mp4")
    web = client(run, copies=tmp_path / "copies")
    answer = web.get("/")
    assert answer.url.path == "/1-run/"
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
    page = Page(answer.text)
    row = page.data["clips"][0]
    shot = web.get(f"/1-run/frames/{row['film']['name']}/{row['film']['frames'][3]:06d}.jpg")
    assert shot.status_code == 200 and shot.content[:2] == b"\xff\xd8"
    text = web.get(f"/1-run/scenes/{row['scene']}.js").text
    scene = json.loads(json.loads(text[len("revisitScene(") : -3]))
    assert [clip["model"] for clip in scene["clips"]] == ["truth", "a", "b"]
    src = scene["clips"][1]["video"]["src"]
    part = web.get(f"/1-run/{src}", headers={"range": "bytes=4-7"})
    assert (part.status_code, part.content) == (206, (tmp_path / "clip.mp4").read_bytes()[4:8])
    assert web.get("/1-run/files/records.jsonl").content == (run / "records.jsonl").read_bytes()
    assert not (run / "report").exists()  # nothing is written into the run


def test_nothing_else_can_be_read(tmp_path: Path) -> None:
    run = make_scenes(tmp_path, ["a"], ["one"])
    (tmp_path / "secret.mp4").write_bytes(b"secret")
    web = client(run, copies=tmp_path / "copies")
    web.get("/1-run/")
    for path in (
        "/2/", "/1-run/files/plan.json", "/1-run/files/..%2fsecret.mp4", "/1-run/media/secret.mp4",
        "/1-run/media/..%2f..%2fsecret.mp4", "/1-run/media/%2fetc%2fpasswd", "/1-run/frames/aa/000001.jpg",
        f"/1-run/frames/{'aa' * 8}/000999.jpg", "/1-run/scenes/..%2f..%2frun.js", "/1-run/units/one.npz",
    ):  # fmt: skip
        assert web.get(path).status_code == 404, path
    assert web.get("/1-run/", headers={"host": "evil.example"}).status_code == 421
    assert web.post("/1-run/state", headers={"origin": "http://evil.example"}).status_code == 403


def test_the_page_follows_a_run_that_is_going(tmp_path: Path) -> None:
    run = make_scenes(tmp_path, ["a", "b"], ["one", "two"], finished=False, answered=1)
    web = client(run, copies=tmp_path / "copies")
    page = Page(web.get("/1-run/").text)
    assert [clip["model"] for clip in page.data["clips"]] == ["a"]
    before = web.get("/1-run/state").json()
    assert before == {"stamp": page.data["live"]["stamp"], "going": True, "done": 1, "of": 4}
    common = {"case": "one@b#0", "version": 1, "protocol": "t", "key": "k", "seconds": 0.1, "schema": 2, "facts": {}}
    with (run / "records.jsonl").open("a") as file:
        file.write(json.dumps({**common, "gate": GATE, "status": "closed", "label": "never left"}) + "\n")
        file.write(json.dumps({**common, "metric": METRIC, "status": "scored", "score": 0.4}) + "\n")
    assert web.get("/1-run/state").json()["stamp"] != before["stamp"]
    page = Page(web.get("/1-run/").text)
    assert [clip["model"] for clip in page.data["clips"]] == ["a", "b"]
    assert web.get("/1-run/state").json()["done"] == 2


def test_several_runs_are_listed(tmp_path: Path) -> None:
    runs = [make_scenes(tmp_path / name, ["a"], ["one"], pictures=False) for name in ("<b>x", "y")]
    web = client(*runs, copies=tmp_path / "copies")
    text = web.get("/").text
    assert "&lt;b&gt;x" in text and "<b>x" not in text
    assert web.get("/2-run/").status_code == 200
