"""Many pictures from text at a time: a folder of them with its `drawings.jsonl`, the cache, and the budget.

Every picture is kept the moment it is there: in the cache, under the digest of its prompt and of the server with model
and parameters, and beside the pictures of a folder in `drawings.jsonl`. Who was stopped goes on where they stopped and
pays for nothing twice. A file that is there and was drawn from anything else is never touched in silence.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from revisit.core import RevisitError, UsageError
from revisit.core.concurrency import results_of_threads
from revisit.media.digest import file_digest
from revisit.media.files import atomic_write_path, try_lock_file, write_json_lines, write_text_atomically
from revisit.servers import images
from revisit.servers.images import Drawing, DrawnPicture, Facts, ImageBackend, ImageBudget, ImagePrice, ImageRequest
from revisit.servers.retries import NoReply, Refused, RetryingCaller, Stopped

PICTURES = "pictures"  # folder of the cache; what was paid for is not pruned


@dataclass(frozen=True)
class ImageResult:
    """What became of a request."""

    id: str
    status: str  # drawn | kept (it was there already) | recorded (drawn earlier) | failed | refused
    reason: str = ""
    file: Path | None = None
    remark: str = ""

    @property
    def has_picture(self) -> bool:
        return self.status in ("drawn", "kept", "recorded")


class Spending:
    """Counts what pictures cost, before they are asked for, and says when to stop."""

    def __init__(self, limit: ImageBudget, price: ImagePrice) -> None:
        self.limit, self.price = limit, price
        self.pictures, self.money, self._under_way = 0, 0.0, 0
        self._lock = threading.Lock()

    def _reserve_picture(self) -> None:
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

    def draw_picture(self, backend: ImageBackend, request: ImageRequest) -> DrawnPicture:
        """A new picture by one call, within the budget."""
        self._reserve_picture()
        picture = None
        try:
            picture = backend.draw(request)
            return picture
        finally:  # what was set aside is replaced by what was spent
            with self._lock:
                self._under_way -= 1
                if picture is not None:
                    self.pictures += 1
                    self.money += self.price.cost_of_picture(picture.usage)


class ImageStore:
    """A folder of pictures with its drawings.jsonl, and the pictures of all folders in the cache."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder, self.cache = folder, cache / PICTURES
        self.lines = self._read_lines()
        self._lock = threading.Lock()

    def _read_lines(self) -> dict[str, Drawing]:
        return {str(line["file"]): line for line in images.read_drawings(self.folder / images.DRAWINGS)}

    @contextmanager
    def hold_alone(self) -> Iterator[None]:
        """One command at a time draws into the folder: each writes all lines of drawings.jsonl that it knows."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("a") as file:
            if not try_lock_file(file):
                raise UsageError(
                    f"another command is drawing pictures in {self.folder}; wait for it, or choose another --out"
                )
            self.lines = self._read_lines()
            yield

    def file_of(self, request: ImageRequest) -> Path:
        """Where the picture of a request lies."""
        return self.folder / f"{request.id}.png"

    def file_state(self, request: ImageRequest, key: str) -> str:
        """`absent`, `same` (drawn from this), or why the file that is there is another."""
        file = self.file_of(request)
        if not file.exists():
            return "absent"
        line = self.lines.get(file.name)
        if line is None:
            return "was not drawn by this command"
        if line["sha256"] != file_digest(file):
            return "was changed since it was drawn"
        return "same" if line["key"] == key else "was drawn from another prompt, size or server"

    def load_recorded_picture(self, key: str) -> DrawnPicture | None:
        """The picture that was drawn earlier, from the cache."""
        place = self.cache / key[:2]
        try:
            record = json.loads((place / f"{key}.json").read_text(encoding="utf-8"))
            png = (place / f"{key}.png").read_bytes()
            _, size = images.to_png_and_size(png)
        except (OSError, ValueError, RevisitError):
            return None
        return DrawnPicture(png, size, dict(record.get("usage") or {}), str(record.get("revised_prompt", "")))

    def store_in_cache(self, key: str, facts: Facts, request: ImageRequest, picture: DrawnPicture) -> None:
        """Keep a picture that was just paid for."""
        place = self.cache / key[:2]
        with atomic_write_path(place / f"{key}.png") as temporary:
            temporary.write_bytes(picture.png)
        record = _drawing_record(key, facts, request, picture)
        write_text_atomically(place / f"{key}.json", json.dumps(record, ensure_ascii=False))

    def write_to_folder(self, key: str, facts: Facts, request: ImageRequest, picture: DrawnPicture) -> None:
        """Write a picture into the folder, with its line in drawings.jsonl."""
        file = self.file_of(request)
        with atomic_write_path(file) as temporary:
            temporary.write_bytes(picture.png)
        line = {"id": request.id, "file": file.name, "sha256": file_digest(file)}
        with self._lock:
            self.lines[file.name] = {**_drawing_record(key, facts, request, picture), **line}
            write_json_lines(self.folder / images.DRAWINGS, self.lines.values())


def draw_missing_pictures(
    requests: Sequence[ImageRequest],
    backend: ImageBackend,
    store: ImageStore,
    *,
    replace: bool = False,
    spending: Spending | None = None,
) -> Iterator[ImageResult]:
    """Draw every picture that is not there, several at a time, and tell what became of each as it ends.

    Parameters
    ----------
    requests
        The pictures; their ids become names of files.
    backend
        Who draws them.
    store
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
    spent = spending or Spending(backend.settings.budget, backend.settings.price)
    caller = RetryingCaller(backend.check, backend.settings.tries, backend.settings.pause)

    def draw_or_reuse(request: ImageRequest) -> ImageResult:
        key = images.picture_key(backend.facts, request)
        state, file = store.file_state(request, key), store.file_of(request)
        if state == "same":
            return ImageResult(request.id, "kept", file=file)
        if state != "absent" and not replace:
            return ImageResult(request.id, "refused", f"{file} is there and {state}; --replace draws it anew")
        picture, status = store.load_recorded_picture(key), "recorded"
        if picture is None:
            status = "drawn"
            try:
                picture = caller.call_with_retries(partial(spent.draw_picture, backend, request), "picture", "drawing")
            except (NoReply, Refused, Stopped) as error:
                if isinstance(error, Stopped):
                    caller.stop_all_calls(error)
                return ImageResult(request.id, "failed", str(error))
            store.store_in_cache(key, backend.facts, request, picture)
        store.write_to_folder(key, backend.facts, request, picture)
        requested_size, is_ = ("x".join(map(str, size)) for size in (request.size, picture.size))
        remark = "" if picture.size == request.size else f"it is {is_}, but {requested_size} was asked for"
        return ImageResult(request.id, status, file=file, remark=remark)

    threads = min(backend.settings.concurrency, len(requests))
    with store.hold_alone():
        try:
            yield from results_of_threads([partial(map, draw_or_reuse)] * threads, requests)
        finally:
            caller.quit.set()


def _drawing_record(key: str, facts: Facts, request: ImageRequest, picture: DrawnPicture) -> Drawing:
    """What is kept of a picture besides its pixels."""
    return {
        "key": key, "prompt": request.prompt, "size": list(request.size), "number": request.number,
        "images": dict(facts), "drawn_size": list(picture.size), "usage": dict(picture.usage),
        "revised_prompt": picture.revised_prompt,
        "drawn": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }  # fmt: skip


def count_and_cost_of_new_pictures(
    requests: Sequence[ImageRequest], backend: ImageBackend, store: ImageStore
) -> tuple[int, float, str]:
    """How many pictures have to be drawn, what they cost by the price of a picture, and in which currency."""
    new, price = 0, backend.settings.price
    for request in requests:
        key = images.picture_key(backend.facts, request)
        new += store.file_state(request, key) != "same" and store.load_recorded_picture(key) is None
    return new, new * price.picture, price.currency
