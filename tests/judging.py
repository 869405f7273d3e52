"""A scripted judge behind real HTTP: a server in this process that answers by a function and can misbehave."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from revisit.judges.protocol import Frames

MODEL = "scripted-vlm"


def pictures(count: int = 3, seed: int = 0, size: tuple[int, int] = (24, 32)) -> Frames:
    """Small random pictures."""
    import cv2

    rng = np.random.default_rng(seed)
    made = [cv2.imencode(".jpg", rng.integers(0, 255, (*size, 3), dtype=np.uint8))[1].tobytes() for _ in range(count)]
    return Frames.of(made, [0.5 * k for k in range(count)], (size[1], size[0]))


def question_of(body: dict[str, Any]) -> str:
    """The text after the last picture."""
    return body["messages"][-1]["content"][-1]["text"]


def images_of(body: dict[str, Any]) -> list[str]:
    return [part["image_url"]["url"] for part in body["messages"][-1]["content"] if part["type"] == "image_url"]


def sees_cards(body: dict[str, Any]) -> bool | None:
    """The right answer to a control question, read from the pixels of the last picture; None for other questions."""
    import base64

    import cv2

    from revisit.judges.canary import COLOURS

    text = question_of(body)
    if "Look at the last frame only" not in text:
        return None
    data = base64.b64decode(images_of(body)[-1].partition(",")[2])
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1].reshape(-1, 3)
    near = min(COLOURS, key=lambda name: np.abs(pixels.mean(0) - COLOURS[name]).sum())
    return pixels.std(0).max() < 4 and f"the colour {near} " in text


def completion(text: str | None, logprobs: Any = None, **more: Any) -> dict[str, Any]:
    """A chat completion as servers write it."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
                "logprobs": logprobs,
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102},
        **more,
    }


def token(text: str, logprob: float, **alternatives: float) -> dict[str, Any]:
    """One token with its alternatives, as servers write it."""
    listed = [{"token": name, "logprob": value, "bytes": list(name.encode())} for name, value in alternatives.items()]
    return {"token": text, "logprob": logprob, "bytes": list(text.encode()), "top_logprobs": listed}


class Server:
    """What the server was asked, and how it answers: `answer(body)` gives text, a completion, or an Exception class."""

    def __init__(self, answer: Callable[[dict[str, Any]], Any]) -> None:
        self.answer = answer
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []  # of what was posted
        self.faults: list[Callable[[BaseHTTPRequestHandler], bool]] = []  # used up one per call; True: it was handled
        self.latency = 0.0
        self.down = False
        self.models: Any = {"object": "list", "data": [{"id": MODEL, "object": "model"}]}
        self.lock = threading.Lock()
        self.url = ""

    @property
    def calls(self) -> int:
        return len(self.requests)


def send(handler: BaseHTTPRequestHandler, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(data)


@contextmanager
def serving(answer: Callable[[dict[str, Any]], Any]):
    """A server at `server.url`, for the length of a test."""
    server = Server(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            server.headers.append(dict(self.headers))
            send(self, 200 if server.models is not None else 404, server.models or {"error": {"message": "no list"}})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with server.lock:
                server.requests.append(body)
                server.paths.append(self.path)
                server.headers.append(dict(self.headers))
                fault = server.faults.pop(0) if server.faults else None
            if server.latency:
                time.sleep(server.latency)
            if fault is not None and fault(self):
                return
            answer = server.answer(body)
            send(self, 200, answer if isinstance(answer, dict | bytes) else completion(answer))

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None: ...  # a client that gave up

    web = Quiet(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{web.server_address[1]}/v1"
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        web.shutdown()
        web.server_close()


def status(code: int, message: str = "trouble", **headers: str):
    """A fault: an error status."""

    def fault(handler: BaseHTTPRequestHandler) -> bool:
        send(handler, code, {"error": {"message": message}}, {k.replace("_", "-"): v for k, v in headers.items()})
        return True

    return fault


def raw(data: bytes, announce: int | None = None):
    """A fault: these bytes as the body; `announce` more than there are to cut it short."""

    def fault(handler: BaseHTTPRequestHandler) -> bool:
        handler.send_response(200)
        handler.send_header("Content-Length", str(announce or len(data)))
        handler.end_headers()
        handler.wfile.write(data)
        handler.close_connection = True
        return True

    return fault


def stall(seconds: float):
    """A fault: silence."""

    def fault(handler: BaseHTTPRequestHandler) -> bool:
        time.sleep(seconds)
        return False

    return fault


def drop(handler: BaseHTTPRequestHandler) -> bool:
    """A fault: the connection is closed without a word."""
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True
    return True
