"""Pictures from text by a server: over real HTTP, with the official client's types as the oracle of the wire."""

from __future__ import annotations

import base64
import json
import time
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import cv2
import numpy as np
import pytest

from revisit.core import UsageError
from revisit.media.digest import file_digest
from revisit.servers.endpoint import NoReply, Refused
from revisit.servers.image_batch import ImageStore, draw_missing_pictures
from revisit.servers.images import ImageRequest, ImageServer, ImageSettings, open_image_backend, to_png_and_size
from tests.judging import MODEL, drop, raw, send, serving, stall, status

KEY = "sk-pictures-4711"
WIDE = (40, 22)  # width, height: no size that anybody else uses


def pixels(prompt: str, size: tuple[int, int] = WIDE) -> np.ndarray:
    """A picture that is told by its prompt."""
    rng = np.random.default_rng(list(prompt.encode()))
    return rng.integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)


def encoded(prompt: str, size: tuple[int, int] = WIDE, suffix: str = ".png") -> str:
    return base64.b64encode(cv2.imencode(suffix, pixels(prompt, size))[1].tobytes()).decode()


def answer(body: dict[str, Any]) -> dict[str, Any]:
    """What the API writes: one picture in the asked size."""
    size = tuple(int(part) for part in body.get("size", "40x22").split("x"))
    usage = {
        "input_tokens": 10, "output_tokens": 200, "total_tokens": 210,
        "input_tokens_details": {"image_tokens": 0, "text_tokens": 10},
    }  # fmt: skip
    return {"created": 1, "data": [{"b64_json": encoded(body["prompt"], size)}], "usage": usage}


def named(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """A picture that is named by its address."""
    return {"created": 1, "data": [{"url": url}]}


def settings(url: str, **more: Any) -> ImageSettings:
    return ImageSettings(url=url, model=MODEL, pause=0.01, **more)


def requests_of(*names: str) -> list[ImageRequest]:
    return [ImageRequest(name, f"a picture of {name}", WIDE) for name in names]


def draw(server, folder: Path, *names: str, cache: Path | None = None, **more: Any):
    replace = more.pop("replace", False)
    backend = ImageServer(settings(server.url, **more))
    store = ImageStore(folder, cache or Path(mkdtemp()))
    made = list(draw_missing_pictures(requests_of(*names), backend, store, replace=replace))
    backend.close()
    return {one.id: one for one in made}


def read(path: Path) -> Any:
    return cv2.imread(str(path))


# --- the wire --------------------------------------------------------------------------------------------------------


def test_we_send_what_the_official_client_sends_and_read_what_it_reads():
    openai = pytest.importorskip("openai")
    with serving(answer) as server:
        ours = ImageServer(settings(server.url, parameters={"quality": "high"}))
        request = requests_of("cup")[0]
        picture = ours.draw(request)
        client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)
        theirs = client.images.generate(**ours.request_body(request))
    assert server.requests[0] == server.requests[1] and server.paths == ["/v1/images/generations"] * 2
    assert theirs.data is not None and theirs.usage is not None
    assert base64.b64decode(theirs.data[0].b64_json) == picture.png
    assert picture.usage == {"input_tokens": theirs.usage.input_tokens, "output_tokens": theirs.usage.output_tokens}


@pytest.mark.parametrize("none_left_out", [True, False])
def test_we_read_what_the_official_types_write(none_left_out):
    types = pytest.importorskip("openai.types")
    picture = types.Image(b64_json=encoded("x", suffix=".jpg"), revised_prompt="a cup, blue")
    made = types.ImagesResponse(created=1, data=[picture], size="1024x1024", output_format="jpeg")
    with serving(lambda body: made.model_dump(exclude_none=none_left_out)) as server:
        found = ImageServer(settings(server.url)).draw(requests_of("x")[0])
    assert (found.size, found.revised_prompt, dict(found.usage)) == (WIDE, "a cup, blue", {})
    as_jpeg = cv2.imdecode(cv2.imencode(".jpg", pixels("x"))[1], cv2.IMREAD_COLOR)
    assert np.array_equal(cv2.imdecode(np.frombuffer(found.png, np.uint8), cv2.IMREAD_COLOR), as_jpeg)  # as it was sent


def test_what_a_server_does_not_know_is_left_out_and_the_size_it_draws_is_told(tmp_path):
    def strict(body):
        return answer({"prompt": body["prompt"], "size": "24x24"})

    with serving(strict) as server:
        server.faults = [
            status(400, "Unknown parameter: 'response_format'."), status(400, "Invalid value '40x22' for size"),
        ]  # fmt: skip
        made = draw(server, tmp_path, "one", "two", concurrency=1)
    assert [set(body) for body in server.requests] == [
        {"model", "prompt", "n", "size", "response_format"}, {"model", "prompt", "n", "size"},
        {"model", "prompt", "n"}, {"model", "prompt", "n"},
    ]  # fmt: skip
    assert {one.status for one in made.values()} == {"drawn"}
    assert made["two"].remark == "it is 24x24, but 40x22 was asked for"


def test_a_picture_may_be_named_by_an_address_of_the_same_host_and_the_key_stays_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PICTURES_KEY", KEY)
    with serving(answer) as server:
        server.answer = partial(named, f"{server.url}/files/1.png")
        server.models = None
        backend = ImageServer(settings(server.url, key_env="PICTURES_KEY"))
        with pytest.raises(NoReply, match="cannot be fetched"):  # our server has no such file
            backend.draw(requests_of("x")[0])
        asked, fetched = server.headers[0], server.headers[-1]
        assert asked["Authorization"] == f"Bearer {KEY}" and "Authorization" not in fetched
    for url in ("file:///etc/hostname", "http://127.0.0.2:1/x.png"):
        with serving(partial(named, url)) as server, pytest.raises(Refused, match="fetched"):
            ImageServer(settings(server.url)).draw(requests_of("x")[0])


# --- what goes wrong --------------------------------------------------------------------------------------------------

FAULTS = {
    "busy": status(429, "slow down", Retry_After="0"),
    "down": status(503),
    "dropped": drop,
    "cut short": raw(b'{"data"', announce=500),
    "no JSON": raw(b"<html>"),
    "no picture": raw(json.dumps({"created": 1, "data": []}).encode()),
    "not a picture": raw(json.dumps({"data": [{"b64_json": base64.b64encode(b"text").decode()}]}).encode()),
    "no base64": raw(json.dumps({"data": [{"b64_json": "%%%"}]}).encode()),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_server_costs_a_further_call_and_nothing_else(tmp_path, name):
    with serving(answer) as server:
        server.faults = [FAULTS[name]]
        made = draw(server, tmp_path, "cup", tries=2)
    assert made["cup"].status == "drawn" and server.calls == 2
    assert np.array_equal(read(tmp_path / "cup.png"), pixels("a picture of cup"))


def test_a_silent_server_is_given_up_and_the_next_run_draws_what_is_left(tmp_path):
    with serving(answer) as server:
        server.faults = [stall(3.0)]
        begun = time.monotonic()
        made = draw(server, tmp_path, "a", "b", tries=1, timeout=0.5, concurrency=1)
        assert time.monotonic() - begun < 60
        assert (made["a"].status, made["b"].status) == ("failed", "drawn") and "no picture after 1" in made["a"].reason
        assert not (tmp_path / "a.png").exists()
        assert {one.status for one in draw(server, tmp_path, "a", "b").values()} == {"drawn", "kept"}


def test_a_refused_prompt_fails_alone_and_a_wrong_key_stops_all(tmp_path, monkeypatch):
    monkeypatch.setenv("PICTURES_KEY", KEY)
    with serving(answer) as server:
        server.faults = [status(400, "the prompt breaks our rules")]
        made = draw(server, tmp_path / "one", "a", "b", concurrency=1)
        assert (made["a"].status, made["b"].status) == ("failed", "drawn")
        assert "the prompt breaks our rules" in made["a"].reason
        calls = server.calls
        server.faults = [status(401, f"the key {KEY} is wrong")]
        made = draw(server, tmp_path / "two", "a", "b", "c", concurrency=1, key_env="PICTURES_KEY")
    assert server.calls == calls + 1 and {one.status for one in made.values()} == {"failed"}
    assert KEY not in made["a"].reason and "$" not in made["a"].reason and "PICTURES_KEY" in made["a"].reason


def test_the_budget_stops_cleanly_and_the_rest_is_drawn_later(tmp_path):
    with serving(answer) as server:
        price = {"picture": 0.04}
        made = draw(server, tmp_path, "a", "b", "c", concurrency=1, price=price, budget={"money": 0.09})
        assert [one.status for one in made.values()] == ["drawn", "drawn", "failed"] and server.calls == 2
        assert "0.09 USD is used up (2 pictures, 0.08 USD)" in made["c"].reason
        made = draw(server, tmp_path, "a", "b", "c", price=price, budget={"pictures": 1})
        assert [made[name].status for name in "abc"] == ["kept", "kept", "drawn"] and server.calls == 3


def test_tokens_that_a_server_counts_are_paid_for(tmp_path):
    from revisit.servers.image_batch import Spending
    from revisit.servers.images import ImageBudget, ImagePrice

    with serving(answer) as server:
        spending = Spending(ImageBudget(), ImagePrice(input=5, output=40))
        backend = ImageServer(settings(server.url))
        list(
            draw_missing_pictures(
                requests_of("a", "b"), backend, ImageStore(tmp_path, tmp_path / "cache"), spending=spending
            )
        )
    assert spending.money == pytest.approx(2 * (10 * 5 + 200 * 40) / 1e6) and spending.pictures == 2


# --- what is kept ----------------------------------------------------------------------------------------------------


def test_one_command_at_a_time_draws_into_a_folder(tmp_path):
    """Each wrote the lines that it knew: what the other had drawn *was not drawn by this command* from then on."""
    with serving(answer) as server:
        store = ImageStore(tmp_path / "frames", tmp_path / "cache")  # before the others have drawn
        draw(server, tmp_path / "frames", "a")
        first = draw_missing_pictures(requests_of("b", "c"), ImageServer(settings(server.url)), store)
        next(first)
        with pytest.raises(UsageError, match=r"another command is drawing pictures in .*frames; wait for it"):
            draw(server, tmp_path / "frames", "d")
        list(first)
        made = draw(server, tmp_path / "frames", "a", "b", "c", "d")
    assert [made[name].status for name in "abcd"] == ["kept", "kept", "kept", "drawn"]


def test_nothing_is_overwritten_in_silence(tmp_path):
    with serving(answer) as server:
        foreign = pixels("somebody else's")
        cv2.imwrite(str(tmp_path / "cup.png"), foreign)
        made = draw(server, tmp_path, "cup", "bowl")
        assert made["cup"].status == "refused" and "was not drawn by this command; --replace" in made["cup"].reason
        assert made["bowl"].status == "drawn" and np.array_equal(read(tmp_path / "cup.png"), foreign)
        assert draw(server, tmp_path, "cup", replace=True)["cup"].status == "drawn"
        (tmp_path / "bowl.png").write_bytes((tmp_path / "cup.png").read_bytes())
        assert "was changed since it was drawn" in draw(server, tmp_path, "bowl")["bowl"].reason
        other = draw(server, tmp_path, "cup", parameters={"quality": "low"})["cup"]
        assert other.status == "refused" and "another prompt, size or server" in other.reason


def test_another_folder_costs_nothing_and_what_was_recorded_is_drawn_without_a_server(tmp_path):
    cache = tmp_path / "cache"
    with serving(answer) as server:
        draw(server, tmp_path / "one", "a", "b", cache=cache)
        again = draw(server, tmp_path / "two", "a", "b", cache=cache)
        assert {one.status for one in again.values()} == {"recorded"} and server.calls == 2
    backend = open_image_backend(str(tmp_path / "one/drawings.jsonl"))
    store = ImageStore(tmp_path / "three", tmp_path / "other cache")
    made = {one.id: one for one in draw_missing_pictures(requests_of("a", "b", "c"), backend, store)}
    assert [made[name].status for name in "abc"] == ["drawn", "drawn", "failed"]
    assert "holds no picture of 'c'" in made["c"].reason
    for name in ("a.png", "b.png"):
        assert len({file_digest(tmp_path / folder / name) for folder in ("one", "two", "three")}) == 1
    (tmp_path / "one/a.png").write_bytes((tmp_path / "one/b.png").read_bytes())
    spoilt = {
        one.id: one
        for one in draw_missing_pictures(
            requests_of("a"), backend, ImageStore(tmp_path / "four", tmp_path / "third cache")
        )
    }
    assert "is not the picture that was drawn" in spoilt["a"].reason


def test_a_torn_line_loses_one_line(tmp_path):
    with serving(answer) as server:
        draw(server, tmp_path, "a", "b")
        record = tmp_path / "drawings.jsonl"
        record.write_bytes(record.read_bytes()[:-30])
        made = draw(server, tmp_path, "a", "b")
    assert sorted(one.status for one in made.values()) == ["kept", "refused"]


def test_several_are_drawn_at_a_time(tmp_path):
    most, now = 0, []

    def slow(body):
        nonlocal most
        now.append(1)
        most = max(most, len(now))
        time.sleep(0.2)
        now.pop()
        return answer(body)

    with serving(slow) as server:
        draw(server, tmp_path, *"abcdef", concurrency=3)
    assert 2 <= most <= 3


# --- settings and the command --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("url: ftp://x\nmodel: m", "must look like http"),
        ("url: http://user:secret@h/v1\nmodel: m", "must not contain a key"),
        ("url: http://h/v1", "model: field required"),
        ("url: http://h/v1\nmodel: m\nkey: abc", "do not write the key here"),
        ("url: http://h/v1\nmodel: m\nsize: huge", "no size"),
        ("url: http://h/v1\nmodel: m\nprize: 3", "prize: extra inputs are not permitted"),
        ("- a list", "expected names and values"),
    ],
)
def test_settings_that_cannot_be_used_say_why(tmp_path, text, says):
    (tmp_path / "images.yaml").write_text(text)
    with pytest.raises(UsageError, match=says) as told:
        open_image_backend(str(tmp_path / "images.yaml"))
    assert "secret" not in str(told.value)


def test_pictures_that_are_none(tmp_path):
    for data in (b"", b"text", b"\x89PNG\r\n\x1a\n" + b"\0" * 40):
        with pytest.raises(NoReply, match="picture"):
            to_png_and_size(data)


def test_the_command_draws_the_scenes_resumes_and_hides_the_key(tmp_path, revisit, monkeypatch):
    monkeypatch.setenv("PICTURES_KEY", KEY)
    with serving(answer) as server:
        text = f"url: {server.url}\nmodel: {MODEL}\nkey_env: PICTURES_KEY\nsize: 40x22\nprice: {{picture: 0.04}}\n"
        (tmp_path / "images.yaml").write_text(text)
        words = ["build", "first-frames", "--images", tmp_path / "images.yaml", "--out", tmp_path / "frames"]
        plan = json.loads(revisit(*words, "--dry-run", "--json").stdout)
        assert plan == {"pictures": 25, "to_draw": 25, "money": pytest.approx(1.0), "currency": "USD"}
        assert server.calls == 0 and not (tmp_path / "frames").exists()
        told = json.loads(revisit(*words, "--limit", 2, "--each", 2, "--json").stdout)
        assert told["counts"] == {"drawn": 4} and server.calls == 4
        made = revisit(*words, "--limit", 3)
        assert "1 drawn" in made.stdout and "2 kept" in made.stdout and server.calls == 5
        assert all(header.get("Authorization") == f"Bearer {KEY}" for header in server.headers)
    names = sorted(path.name for path in (tmp_path / "frames").glob("*.png"))
    assert names == [
        "garage_mechanic_hood-2.png", "garage_mechanic_hood.png", "greenhouse_gardener_watering.png",
        "studio_potter_wheel-2.png", "studio_potter_wheel.png",
    ]  # fmt: skip
    line = json.loads((tmp_path / "frames/drawings.jsonl").read_text().splitlines()[0])
    assert line["images"]["model"] == MODEL and line["usage"] == {"input_tokens": 10, "output_tokens": 200}
    everything = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(KEY.encode() in content for content in everything)
    again = revisit(*words[:2], "--images", tmp_path / "frames/drawings.jsonl", "--out", tmp_path / "copy",
                    "--limit", 3, "--size", "40x22")  # fmt: skip
    assert "3 recorded" in again.stdout


def test_a_dataset_is_built_with_pictures_of_a_server(tmp_path, revisit):
    from tests.suites.test_authoring import ASKED, SCENES

    text = SCENES.read_text()
    (tmp_path / "scenes.yaml").write_text(text[: text.index("  greenhouse_gardener_watering:")])
    with serving(answer) as server:
        server.faults = [status(400, "not this one")]
        (tmp_path / "images.yaml").write_text(f"url: {server.url}\nmodel: {MODEL}\nconcurrency: 1\n")
        words = ["build", "wrbench", tmp_path / "scenes.yaml", "--images", tmp_path / "images.yaml", "--size", "40x22"]
        half = revisit(*words, "--out", tmp_path / "half", *ASKED, check=1)
        assert "studio_potter_wheel: no first frame: failed: the server answered 400: not this one" in half.stderr
        revisit(*words, "--out", tmp_path / "built", *ASKED)
        assert server.calls == 3  # the picture that was paid for is not drawn again
    assert "nothing is wrong" in revisit("build", "check", tmp_path / "built").stdout
    frames = json.loads((tmp_path / "built/first_frames_manifest.json").read_text())
    assert [(row["width"], row["height"]) for row in frames] == [WIDE, WIDE]
    assert frames[0]["sha256"] == file_digest(tmp_path / "built/first_frames/studio_potter_wheel.png")
    both = revisit(*words, "--t2i", "draw {prompt} {out}", "--out", tmp_path / "third", *ASKED, check=2)
    assert "give one of them" in both.stderr


def test_prompts_of_records_and_names_that_are_no_names(tmp_path, revisit):
    with serving(answer) as server:
        (tmp_path / "images.yaml").write_text(f"url: {server.url}\nmodel: {MODEL}\n")
        words = ["--images", tmp_path / "images.yaml", "--out", tmp_path / "out", "--size", "40x22"]
        rows = [{"id": "a", "prompt": "one"}, {"id": "b", "prompt": "two", "image_prompt": "the first picture"}]
        (tmp_path / "records.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        revisit("build", "first-frames", tmp_path / "records.jsonl", *words)
        assert sorted(body["prompt"] for body in server.requests) == ["one", "the first picture"]
        (tmp_path / "records.jsonl").write_text(json.dumps({"id": "../x", "prompt": "one"}))
        said = revisit("build", "first-frames", tmp_path / "records.jsonl", *words, check=2)
        assert "cannot be the name of a picture" in said.stderr and server.calls == 2


@pytest.mark.slow
def test_a_server_that_sends_too_much_is_left(tmp_path):
    def flood(handler):
        send(handler, 200, b"x" * (65 << 20))
        return True

    with serving(answer) as server:
        server.faults = [flood]
        made = draw(server, tmp_path, "a", tries=1)
    assert made["a"].status == "failed" and "larger than 64 MiB" in made["a"].reason
