"""What tests in a real browser share: Debian's or Playwright's own Chromium, and a server in a thread."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless Chromium, or a skip that says what is missing."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright (pip install 'revisit-bench[dev]')")
    path = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    with api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=path, args=["--no-sandbox", "--autoplay-policy=no-user-gesture-required"]
            )
        except api.Error as error:
            pytest.skip(f"needs Chromium (apt install chromium, or playwright install chromium): {str(error)[:80]}")
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """The address of an application that is served while the block runs, behind the same guard as always."""
    uvicorn = pytest.importorskip("uvicorn", reason="needs uvicorn (pip install 'revisit-bench[annotate]')")
    from revisit.web.server import Guard, ListenAddress

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(128)
        config = uvicorn.Config(
            Guard(app, ListenAddress().allowed_host_names), log_level="warning", lifespan="off", ws="none"
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join(10)


def until(tab: Any, expression: str, seconds: float = 20.0) -> None:
    """Wait until an expression holds in a page; its policy lets no polling script in, so we ask again and again."""
    end = time.monotonic() + seconds
    while not _holds(tab, expression):
        assert time.monotonic() < end, f"still not true after {seconds} s: {expression}"
        time.sleep(0.02)


def _holds(tab: Any, expression: str) -> bool:
    from playwright.sync_api import Error

    try:
        return bool(tab.evaluate(expression))
    except Error as error:
        if "context was destroyed" in str(error) or "navigat" in str(error):
            return False  # the page is just being left
        raise
