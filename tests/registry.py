"""A server on this machine that plays a package index, an npm registry, a hub and a mirror."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
import time
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml


class Server:
    """Answers with the bytes in `pages`; `moods` make an answer go wrong; `asked` remembers every request."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.status: dict[str, int] = {}  # path -> status instead of 200
        self.moods: dict[str, list[str]] = {}  # path -> what goes wrong, one mood for each request
        self.asked: list[tuple[str, Mapping[str, str]]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.httpd.server_address[1]}"
        self.thread = threading.Thread(target=self.httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path
        self.asked.append((path, {key.lower(): value for key, value in request.headers.items()}))
        mood = self.moods[path].pop(0) if self.moods.get(path) else ""
        if mood == "slow":
            time.sleep(1.0)
        status = 503 if mood == "busy" else self.status.get(path, 200 if path in self.pages else 404)
        if path in self.redirects:
            request.send_response(302)
            request.send_header("Location", self.redirects[path])
            request.end_headers()
            return
        body = self.pages.get(path, b"") if status == 200 else b""
        first = 0
        if status == 200 and (said := request.headers.get("Range", "")):
            first = int(said.removeprefix("bytes=").rstrip("-"))
            status = 206 if first < len(body) else 416
        request.send_response(status)
        body = body[first:]
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        with suppress(OSError):  # the other side may have had enough
            request.wfile.write(body[: len(body) // 2] if mood == "broken" else body)

    def count(self, path: str) -> int:
        return sum(asked == path for asked, _ in self.asked)

    def header(self, path: str, name: str) -> str | None:
        """A header of the latest request for this path."""
        return next((headers.get(name) for asked, headers in reversed(self.asked) if asked == path), None)

    def close(self) -> None:
        self.httpd.shutdown()
        self.httpd.server_close()

    def index(self, package: str, archives: Mapping[str, bytes], *, as_json: bool = False) -> None:
        """Put archives of a package into the index, in one of the two forms of its pages."""
        for name, body in archives.items():
            self.pages[f"/files/{name}"] = body
        if as_json:
            files = [{"filename": name, "url": f"../../files/{name}", "hashes": {}} for name in archives]
            page = json.dumps({"meta": {"api-version": "1.0"}, "name": package, "files": files})
        else:
            links = "".join(
                f'<a href="../../files/{name}#sha256={sha256(archives[name])}">{name}</a>' for name in archives
            )
            page = f"<!DOCTYPE html><html><body>{links}</body></html>"
        self.pages[f"/simple/{package}/"] = page.encode()

    def npm(self, package: str, version: str, archive: bytes, *, whole: bool = False, host: str = "") -> str:
        """Put a version of a package into the npm registry; with `whole` only the page of the package knows it."""
        path = f"/npm/{package}/-/{package.rpartition('/')[2]}-{version}.tgz"
        about: dict[str, Any] = {"name": package, "version": version, "dist": {"tarball": (host or self.url) + path}}
        page = f"/npm/{package.replace('/', '%2f')}"
        if whole:
            self.pages[page] = json.dumps({"versions": {version: about}}).encode()
        else:
            self.pages[f"{page}/{version}"] = json.dumps(about).encode()
        self.pages[path] = archive
        return path


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def tar(members: Mapping[str, bytes], *, links: Mapping[str, str] | None = None) -> bytes:
    """A gzipped tar archive."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, to in (links or {}).items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, to
            archive.addfile(link)
        for name, body in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return made.getvalue()


def wheel(members: Mapping[str, bytes], *, links: Mapping[str, str] | None = None) -> bytes:
    """A zip archive."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, to in (links or {}).items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o120777 << 16
            archive.writestr(info, to)
        for name, body in members.items():
            archive.writestr(name, body)
    return made.getvalue()


def write_lock(path: Path, **entries: Any) -> None:
    """A lock of a user's own; every entry has a title and a licence."""
    said = {id.replace("_", "-"): {"title": id, "licence": "MIT", **entry} for id, entry in entries.items()}
    path.write_text(yaml.safe_dump({"weights": said}), encoding="utf-8")
