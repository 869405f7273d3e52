"""Pictures from text, by a server with OpenAI's `images/generations`.

Every picture is kept the moment it is there: in the cache, under the digest of its prompt and of the server with model
and parameters, and beside the pictures of a folder in `drawings.jsonl`. Who was stopped goes on where they stopped and
pays for nothing twice, and `drawings.jsonl` draws the same pictures once more without a network. A file that is there
and was drawn from anything else is never touched in silence.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import queue
import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from revisit import http_client
from revisit.core import RevisitError, UsageError, digest
from revisit.core.text import json_lines, yaml_file
from revisit.core.threads import started
from revisit.media.digest import file_digest
from revisit.media.files import replacing, write_lines, write_text
from revisit.servers.endpoint import Endpoint, EndpointSettings, NoReply, Refused, Stopped

DRAWINGS = "drawings.jsonl"  # beside the pictures of a folder: what each was drawn from
PICTURES = "pictures"  # folder of the cache; what was paid for is not pruned
LARGEST_PICTURE = 64 << 20  # bytes of an answer
MOST_PIXELS = 64 << 20
LONGEST_PAUSE, LONGEST_WAIT = 60.0, 600.0  # seconds
# What a server may not know, and the words by which its complaint names it.
OPTIONAL = {"response_format": ("response_format",), "size": ("size",), "n": ("'n'", '"n"')}
PNG = b"\x89PNG\r\n\x1a\n"


class Price(BaseModel):
    """What a picture costs, or a million tokens, where the server counts them."""

    model_config = ConfigDict(extra="forbid")

    picture: float = Field(default=0.0, ge=0)
    input: float = Field(default=0.0, ge=0)
    output: float = Field(default=0.0, ge=0)
    currency: str = "USD"

    def of(self, usage: Mapping[str, int]) -> float:
        """What one picture cost."""
        tokens = usage.get("input_tokens", 0) * self.input + usage.get("output_tokens", 0) * self.output
        return self.picture + tokens / 1e6


class Limit(BaseModel):
    """What one invocation may spend; None for as much as it takes."""

    model_config = ConfigDict(extra="forbid")

    pictures: int | None = Field(default=None, ge=0)
    money: float | None = Field(default=None, ge=0)


class ImageSettings(EndpointSettings):
    """What a file of settings says of a text-to-image server."""

    timeout: float = Field(default=300.0, gt=0)
    size: str = ""  # width x height; the caller's where it is left out
    concurrency: int = Field(default=4, ge=1, le=64)
    tries: int = Field(default=6, ge=1)
    pause: float = Field(default=1.0, ge=0)
    price: Price = Price()
    budget: Limit = Limit()
    parameters: dict[str, Any] = Field(default_factory=dict)  # sent as they are, such as quality or seed

    @field_validator("size")
    @classmethod
    def _size(cls, text: str) -> str:
        if text:
            size_of(text)
        return text


@dataclass(frozen=True)
class Request:
    """One picture to draw."""

    id: str  # name of its file
    prompt: str
    size: tuple[int, int]  # width, height
    number: int = 0  # of several pictures of one prompt


@dataclass(frozen=True)
class Picture:
    """A picture as a server drew it: the bytes of a PNG file, its size, and what the server said of it."""

    png: bytes
    size: tuple[int, int]
    usage: Mapping[str, int] = field(default_factory=dict)
    revised_prompt: str = ""


@dataclass(frozen=True)
class Drawn:
    """What became of a request."""

    id: str
    status: str  # drawn | kept (it was there already) | recorded (drawn earlier) | failed | refused
    reason: str = ""
    file: Path | None = None
    remark: str = ""

    @property
    def good(self) -> bool:
        return self.status in ("drawn", "kept", "recorded")


class Painter(Protocol):
    """Somebody who draws, one attempt at a time."""

    facts: Mapping[str, Any]  # everything that its pictures depend on
    settings: ImageSettings

    def check(self) -> None:
        """Raise Stopped where nothing can be drawn at all."""

    def draw(self, request: Request) -> Picture:
        """One picture; NoReply, Refused or Stopped where there is none."""

    def close(self) -> None:
        """Let go of connections."""


class ImageServer(Endpoint):
    """A text-to-image model behind an HTTP endpoint."""

    noun = "image server"
    largest = LARGEST_PICTURE
    optional = OPTIONAL

    def __init__(self, settings: ImageSettings) -> None:
        super().__init__(settings)
        self.settings = settings
        self.facts: Mapping[str, Any] = {
            "images": "openai", "model": settings.model, "server": settings.server or self.url,
            "parameters": settings.parameters,
        }  # fmt: skip

    def body(self, request: Request) -> dict[str, Any]:
        """What is sent."""
        width, height = request.size
        body = {
            "model": self.settings.model,
            "prompt": request.prompt,
            "n": 1,
            "size": f"{width}x{height}",
            "response_format": "b64_json",
            **self.settings.parameters,
        }
        return {name: value for name, value in body.items() if value is not None and name not in self.left_out}

    def draw(self, request: Request) -> Picture:
        """One picture of a prompt."""
        while True:
            answer = self.post("/images/generations", self.body(request))
            if answer is not None:
                return self._read(answer)

    def _read(self, answer: bytes) -> Picture:
        """The picture in a server's answer; NoReply where there is none."""
        try:
            content = json.loads(answer)
            (first, *_) = content["data"]
            encoded, url = first.get("b64_json"), first.get("url")
            if not encoded and not url:
                raise KeyError("b64_json")
            data = base64.b64decode(encoded, validate=True) if encoded else self._fetch(str(url))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, binascii.Error):
            raise NoReply("the server's reply holds no picture") from None
        png, size = as_png(data)
        counted = content.get("usage")
        usage = {
            name: int(value)
            for name, value in (counted if isinstance(counted, dict) else {}).items()
            if name in ("input_tokens", "output_tokens") and isinstance(value, int) and value >= 0
        }
        return Picture(png, size, usage, self.secret.redact(str(first.get("revised_prompt") or "")))

    def _fetch(self, url: str) -> bytes:
        """A picture that the server names by an address; without the key, which is for the server itself."""
        if url.startswith("data:"):
            return base64.b64decode(url.partition(",")[2], validate=True)
        if urlsplit(url).scheme != "https" and not http_client.same_host(url, self.url):
            raise Refused(f"the server names a picture at {http_client.shown(url)[:200]}, which is not fetched")
        try:
            return http_client.read(url)[0]
        except http_client.Unavailable as error:
            raise NoReply(f"the picture that the server names cannot be fetched: {error.said[:200]}") from None


class RecordedImages:
    """Pictures of an earlier folder (`drawings.jsonl`), as the server that drew them."""

    def __init__(self, path: Path, model: str = "") -> None:
        self.path = path
        lines = [line for line in read_drawings(path) if not model or line["images"].get("model") == model]
        servers = {digest(line["images"]): line["images"] for line in lines}
        if len(servers) != 1:
            names = ", ".join(sorted(str(one.get("model")) for one in servers.values())) or "nobody"
            raise UsageError(f"{path}: expected the pictures of one server, found those of {names}")
        self.facts: Mapping[str, Any] = next(iter(servers.values()))
        self.settings = ImageSettings(url="http://recorded", model=str(self.facts.get("model", "")), tries=1)
        self.lines = {str(line["key"]): line for line in lines}

    def check(self) -> None:
        """Nobody has to be reached."""

    def draw(self, request: Request) -> Picture:
        """The recorded picture."""
        line = self.lines.get(picture_key(self.facts, request))
        file = self.path.parent / Path(str(line["file"])).name if line else None  # of this folder, whatever it says
        if line is None or file is None or not file.is_file():
            raise Refused(f"{self.path} holds no picture of {request.id!r} with this prompt and size; use a server")
        if file_digest(file) != line["sha256"]:
            raise Refused(f"{file} is not the picture that was drawn; use a server")
        png, size = as_png(file.read_bytes())
        return Picture(png, size, dict(line.get("usage") or {}), str(line.get("revised_prompt", "")))

    def close(self) -> None:
        """Nothing is open."""


def choose_images(said: str) -> Painter:
    """Who draws: a YAML file of settings, or the `drawings.jsonl` of an earlier folder.

    Parameters
    ----------
    said
        Path of the file. A key stands in neither: settings name a variable (`key_env`) or a file (`key_file`).
    """
    path = Path(said)
    if not path.is_file():
        raise UsageError(f"{said}: no such file; --images takes a YAML file with url and model, or a {DRAWINGS}")
    if path.suffix == ".jsonl":
        return RecordedImages(path)
    content = yaml_file(path)
    if not isinstance(content, dict):
        raise UsageError(f"{path}: expected names and values, such as `url: http://127.0.0.1:8000/v1`")
    if any(str(name).lower() in ("key", "api_key", "token", "password", "secret") for name in content):
        raise UsageError(f"{path}: do not write the key here; use `key_env: NAME` or `key_file: path`")
    try:
        settings = ImageSettings(**content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{path}: {name}: {first['msg'].lower()}; docs/build.md lists all settings") from None
    if settings.key_file is not None:
        settings = settings.model_copy(update={"key_file": path.parent / settings.key_file.expanduser()})
    return ImageServer(settings)


def size_of(text: str) -> tuple[int, int]:
    """Width and height, from text such as 1280x720."""
    try:
        width, height = (int(part) for part in text.lower().split("x"))
    except ValueError:
        raise UsageError(f"{text!r} is no size; a size is width x height, such as 1280x720") from None
    if not 16 <= width <= 8192 or not 16 <= height <= 8192:
        raise UsageError(f"{text!r} is no size of a picture: both numbers lie between 16 and 8192")
    return width, height


def picture_key(facts: Mapping[str, Any], request: Request) -> str:
    """Address of a picture: its prompt, size and number, and who draws it."""
    what = {"prompt": request.prompt, "size": list(request.size), "number": request.number}
    return digest({"images": dict(facts), **what}, 40)


def as_png(data: bytes) -> tuple[bytes, tuple[int, int]]:
    """A picture as the bytes of a PNG file, and its width and height; NoReply where it is none."""
    import cv2

    if not data or len(data) > LARGEST_PICTURE:
        raise NoReply("the server's reply holds no picture")
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    except cv2.error:
        pixels = None
    if pixels is None or pixels.shape[0] * pixels.shape[1] > MOST_PIXELS:
        raise NoReply("what the server sent is no picture that can be read")
    size = (pixels.shape[1], pixels.shape[0])
    if data.startswith(PNG):
        return data, size
    return cv2.imencode(".png", pixels)[1].tobytes(), size


def read_drawings(path: Path) -> list[dict[str, Any]]:
    """The lines of a drawings.jsonl; one that a kill left torn is passed over."""
    if not path.is_file():
        return []
    rows = [row for _, row in json_lines(path.read_text(encoding="utf-8", errors="replace")) if isinstance(row, dict)]
    whole = [row for row in rows if all(isinstance(row.get(name), str) for name in ("key", "file", "sha256"))]
    return [{**row, "images": dict(row.get("images") or {})} for row in whole]


class Spending:
    """Counts what pictures cost, before they are asked for, and says when to stop."""

    def __init__(self, limit: Limit, price: Price) -> None:
        self.limit, self.price = limit, price
        self.pictures, self.money, self._under_way = 0, 0.0, 0
        self._lock = threading.Lock()

    def reserve(self) -> None:
        """Set aside one picture, or raise Stopped where there is no room for it."""
        with self._lock:
            count = self.pictures + self._under_way + 1
            each = max(self.price.picture, self.money / self.pictures if self.pictures else 0.0)
            money = self.money + (self._under_way + 1) * each
            for name, value, most in (
                ("pictures", count, self.limit.pictures), (self.price.currency, money, self.limit.money),
            ):  # fmt: skip
                if most is not None and value > most + 1e-9:
                    raise Stopped(
                        f"the budget of {most:g} {name} is used up ({self.pictures} pictures, {self.money:.4g} "
                        f"{self.price.currency}); raise it in the settings and run the same command again: pictures "
                        "already paid for are kept"
                    )
            self._under_way += 1

    def settle(self, picture: Picture | None) -> None:
        """Replace what was set aside by what was spent."""
        with self._lock:
            self._under_way -= 1
            if picture is not None:
                self.pictures += 1
                self.money += self.price.of(picture.usage)


class Album:
    """A folder of pictures with its drawings.jsonl, and the pictures of all folders in the cache."""

    def __init__(self, folder: Path, cache: Path | None) -> None:
        self.folder, self.cache = folder, None if cache is None else cache / PICTURES
        self.lines = {str(line["file"]): line for line in read_drawings(folder / DRAWINGS)}
        self._lock = threading.Lock()

    def state(self, request: Request, key: str) -> str:
        """`absent`, `same` (drawn from this), or why the file that is there is another."""
        file = self.folder / f"{request.id}.png"
        if not file.exists():
            return "absent"
        line = self.lines.get(file.name)
        if line is None:
            return "was not drawn by this command"
        if line["sha256"] != file_digest(file):
            return "was changed since it was drawn"
        return "same" if line["key"] == key else "was drawn from another prompt, size or server"

    def recorded(self, key: str) -> Picture | None:
        """The picture that was drawn earlier, from the cache."""
        if self.cache is None:
            return None
        place = self.cache / key[:2]
        try:
            told = json.loads((place / f"{key}.json").read_text(encoding="utf-8"))
            png = (place / f"{key}.png").read_bytes()
            _, size = as_png(png)
        except (OSError, ValueError, RevisitError):
            return None
        return Picture(png, size, dict(told.get("usage") or {}), str(told.get("revised_prompt", "")))

    def keep(self, key: str, facts: Mapping[str, Any], request: Request, picture: Picture) -> None:
        """Keep a picture that was just paid for."""
        if self.cache is None:
            return
        place = self.cache / key[:2]
        with replacing(place / f"{key}.png") as temporary:
            temporary.write_bytes(picture.png)
        write_text(place / f"{key}.json", json.dumps(_told(key, facts, request, picture), ensure_ascii=False))

    def put(self, key: str, facts: Mapping[str, Any], request: Request, picture: Picture) -> Path:
        """Write a picture into the folder, with its line in drawings.jsonl."""
        file = self.folder / f"{request.id}.png"
        with replacing(file) as temporary:
            temporary.write_bytes(picture.png)
        line = {**_told(key, facts, request, picture), "id": request.id, "file": file.name, "sha256": file_digest(file)}
        with self._lock:
            self.lines[file.name] = line
            write_lines(self.folder / DRAWINGS, self.lines.values())
        return file


def draw_all(
    requests: Sequence[Request],
    painter: Painter,
    album: Album,
    *,
    replace: bool = False,
    spending: Spending | None = None,
) -> Iterator[Drawn]:
    """Draw every picture that is not there, several at a time, and tell what became of each as it ends.

    Parameters
    ----------
    requests
        The pictures; their ids become names of files.
    painter
        Who draws them.
    album
        The folder they go to, and the cache they may come from.
    replace
        Draw anew where a file lies that was drawn from something else; otherwise such a request is refused.
    spending
        The budget; that of the settings by default.

    Yields
    ------
    Drawn
        `drawn`, `kept`, `recorded` (drawn earlier, paid for then), `failed` or `refused`, in the order they end.
    """
    spent = spending or Spending(painter.settings.budget, painter.settings.price)
    waiting: queue.SimpleQueue[Request] = queue.SimpleQueue()
    ended: queue.SimpleQueue[Drawn | BaseException] = queue.SimpleQueue()
    for request in requests:
        waiting.put(request)
    worker = _Worker(painter, album, replace, spent)

    def work() -> None:
        while not worker.quit.is_set():
            try:
                request = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                ended.put(worker.one(request))
            except BaseException as error:
                ended.put(error)
                return

    try:
        for _ in range(min(painter.settings.concurrency, len(requests))):
            started(work, name="draw")
        for _ in requests:
            drawn = ended.get()
            if isinstance(drawn, BaseException):
                raise drawn
            yield drawn
    finally:
        worker.quit.set()


class _Worker:
    """One request after the other, with all the patience that it takes."""

    def __init__(self, painter: Painter, album: Album, replace: bool, spending: Spending) -> None:
        self.painter, self.album, self.replace, self.spending = painter, album, replace, spending
        self.quit = threading.Event()
        self._stopped: Stopped | None = None
        self._checking, self._checked = threading.Lock(), False

    def one(self, request: Request) -> Drawn:
        """What became of one request."""
        key = picture_key(self.painter.facts, request)
        state = self.album.state(request, key)
        if state == "same":
            return Drawn(request.id, "kept", file=self.album.folder / f"{request.id}.png")
        if state != "absent" and not self.replace:
            file = self.album.folder / f"{request.id}.png"
            return Drawn(request.id, "refused", f"{file} is there and {state}; --replace draws it anew")
        picture, status = self.album.recorded(key), "recorded"
        if picture is None:
            try:
                picture, status = self._drawn(request), "drawn"
            except (NoReply, Refused, Stopped) as error:
                if isinstance(error, Stopped):
                    self._stopped = error
                return Drawn(request.id, "failed", str(error))
            self.album.keep(key, self.painter.facts, request, picture)
        file = self.album.put(key, self.painter.facts, request, picture)
        asked, is_ = ("x".join(map(str, size)) for size in (request.size, picture.size))
        remark = "" if picture.size == request.size else f"it is {is_}, but {asked} was asked for"
        return Drawn(request.id, status, file=file, remark=remark)

    def _drawn(self, request: Request) -> Picture:
        """A new picture, after as many calls as it takes, within the budget."""
        settings = self.painter.settings
        pause = settings.pause
        for attempt in range(1, settings.tries + 1):
            self._check()
            if self.quit.is_set():
                raise NoReply("drawing was interrupted")
            self.spending.reserve()
            picture = None
            try:
                picture = self.painter.draw(request)
                return picture
            except NoReply as error:
                if attempt == settings.tries:
                    raise NoReply(f"no picture after {attempt} calls; the last one: {error}") from None
                # A random share of the pause keeps many workers from coming back at the same moment.
                wait = random.uniform(0.5, 1.0) * min(pause, LONGEST_PAUSE)
                self.quit.wait(wait if error.wait is None else min(error.wait, LONGEST_WAIT) + wait / 10)
                pause *= 2
            finally:
                self.spending.settle(picture)
        raise AssertionError("unreachable")

    def _check(self) -> None:
        with self._checking:
            if not self._checked and self._stopped is None:
                self._checked = True
                try:
                    self.painter.check()
                except RevisitError as error:
                    self._stopped = Stopped(str(error))
        if self._stopped is not None:
            raise self._stopped


def _told(key: str, facts: Mapping[str, Any], request: Request, picture: Picture) -> dict[str, Any]:
    """What is kept of a picture besides its pixels."""
    return {
        "key": key, "prompt": request.prompt, "size": list(request.size), "number": request.number,
        "images": dict(facts), "drawn_size": list(picture.size), "usage": dict(picture.usage),
        "revised_prompt": picture.revised_prompt,
        "drawn": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }  # fmt: skip


def expected_cost(requests: Sequence[Request], painter: Painter, album: Album) -> tuple[int, float, str]:
    """How many pictures have to be drawn, what they cost by the price of a picture, and in which currency."""
    keys = [(request, picture_key(painter.facts, request)) for request in requests]
    new = sum(album.state(request, key) != "same" and album.recorded(key) is None for request, key in keys)
    price = painter.settings.price
    return new, math.fsum([price.picture] * new), price.currency
