"""Store: raters and what they said, in SQLite (a file) or PostgreSQL (a connection string).

An answer counts from the moment its transaction is on disk, and only then is it acknowledged; one rater has one answer
to an item, so that sending a form twice cannot double it. Every answer that was ever sent stays in `history`.
SQLite writes ahead (WAL) and syncs with every commit. Connections are one per thread. A full disk, or a server that is
gone, is `StoreUnavailable`: nothing of the transaction is kept, and the next request tries with a new connection.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib.resources import files
from typing import Any, TypeVar

from revisit.core import UsageError
from revisit.core.optional import import_optional

HOLD = 30 * 60  # seconds for which an item that was shown is kept for its rater
TABLES = (files(__package__) / "schema.sql").read_text(encoding="utf-8")
FULL = "the disk of the labels is full"
GONE = "the database of the labels cannot be reached"
BROKEN = "the file of the labels cannot be used"
CONNECT_SECONDS = 10
Made = TypeVar("Made")
Run = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]


class StoreUnavailable(UsageError):
    """Labels cannot be read or written now: `problem` says why; the whole sentence also names files and machines."""

    def __init__(self, problem: str, detail: str) -> None:
        super().__init__(f"{problem}: {detail}")
        self.problem = problem


@dataclass(frozen=True)
class Rater:
    """Somebody who may answer."""

    id: str
    name: str
    number: int  # 0 for the first: decides on the form of a survey
    closed: bool = False


@dataclass(frozen=True)
class RaterAnswer:
    """All that one rater said of one item: answers by question, and what goes with them."""

    item: str
    rater: str
    answers: Mapping[str, str] = field(default_factory=dict)
    frames: Mapping[str, int] = field(default_factory=dict)
    boxes: Sequence[Mapping[str, Any]] = ()  # name, frame, and box: x0, y0, x1, y1 as fractions
    texts: Mapping[str, str] = field(default_factory=dict)  # question -> its new words
    comment: str = ""
    seconds: float = 0.0
    swapped: bool = False
    at: str = ""

    @property
    def content_json(self) -> str:
        parts = {name: getattr(self, name) for name in ("answers", "frames", "boxes", "texts", "comment")}
        return json.dumps(parts, ensure_ascii=False, allow_nan=False)


class Store:
    """Raters, answers, drafts and what is being looked at."""

    def __init__(self, where: str, project: str = "") -> None:
        """`project` keeps projects apart that share a PostgreSQL database; an SQLite file has one only."""
        self.where = where
        self.schema = f"revisit_{project}" if project else "public"
        self.postgres = where.startswith(("postgresql://", "postgres://"))
        self.database: Any = import_optional("psycopg", "postgres") if self.postgres else sqlite3
        self._local = threading.local()
        self._writing = threading.Lock()  # SQLite has one writer: wait here and not by polling the file
        with self._transaction() as run:
            if self.postgres:
                run(f'CREATE SCHEMA IF NOT EXISTS "{self.schema}"', ())
            for statement in TABLES.split(";"):
                if statement.strip():
                    run(statement, ())

    # Raters

    def add_rater(self, name: str) -> tuple[Rater, str]:
        """A new rater, and the token of the link; only its digest is kept."""
        name = " ".join(name.split())[:80]
        if not name or not name.isprintable():
            raise UsageError("a rater's name needs printable characters")
        token = secrets.token_urlsafe(24)
        with self._transaction() as run:
            if run("SELECT id FROM raters WHERE name = ?", (name,)):
                raise UsageError(f"there is already a rater {name!r}")
            number = run("SELECT COUNT(*) FROM raters", ())[0][0]
            rater = Rater(f"r{number + 1:02d}-{secrets.token_hex(3)}", name, number)
            run(
                "INSERT INTO raters (id, name, token, number, at) VALUES (?, ?, ?, ?, ?)",
                (rater.id, name, _token_digest(token), number, _utc_now_text()),
            )
        return rater, token

    def find_rater_by_token(self, token: str) -> Rater | None:
        """Whose link this is; None for nobody's, and for one that was closed."""
        sql = "SELECT id, name, number FROM raters WHERE token = ? AND closed = 0"
        return next((Rater(*row) for row in self._query_rows(sql, (_token_digest(token),))), None)

    def raters(self) -> list[Rater]:
        rows = self._query_rows("SELECT id, name, number, closed FROM raters ORDER BY number", ())
        return [Rater(rater_id, name, number, bool(closed)) for rater_id, name, number, closed in rows]

    def renew_token(self, rater: str) -> str:
        """A new link for a rater; the old one no longer works."""
        token = secrets.token_urlsafe(24)
        with self._transaction() as run:
            run("UPDATE raters SET token = ?, closed = 0 WHERE id = ?", (_token_digest(token), rater))
        return token

    def close_rater(self, rater: str) -> None:
        """Shut a rater's link; what was said stays."""
        with self._transaction() as run:
            run("UPDATE raters SET closed = 1 WHERE id = ?", (rater,))

    # Answers

    def submit(self, answer: RaterAnswer) -> None:
        """Keep an answer; when this returns it is on disk. An earlier one of the same rater to the item is replaced."""
        now = _utc_now_text()
        with self._transaction() as run:
            facts = {"seconds": answer.seconds, "swapped": int(answer.swapped), "at": now, "stamp": time.time()}
            _upsert(run, "answers", answer.item, answer.rater, content=answer.content_json, **facts)
            self._note(run, "submit", answer.item, answer.rater, answer.content_json, now)
            for table in ("drafts", "holds"):
                run(f"DELETE FROM {table} WHERE item = ? AND rater = ?", (answer.item, answer.rater))

    def undo_last_answer(self, rater: str) -> str | None:
        """Take a rater's last answer back, as a draft; the item it is of, or None where there is none."""
        with self._transaction() as run:
            rows = run("SELECT item, content, stamp FROM answers WHERE rater = ? ORDER BY stamp DESC LIMIT 1", (rater,))
            if not rows:
                return None
            item, content, _ = rows[0]
            run("DELETE FROM answers WHERE item = ? AND rater = ?", (item, rater))
            self._note(run, "undo", item, rater, content, _utc_now_text())
            _upsert(run, "drafts", item, rater, content=content, stamp=time.time())
            _upsert(run, "holds", item, rater, since=time.time())
        return str(item)

    def save_draft(self, item: str, rater: str, content: str) -> None:
        """Keep what a rater has chosen and not yet sent, unless it was sent meanwhile."""
        with self._transaction() as run:
            if not run("SELECT 1 FROM answers WHERE item = ? AND rater = ?", (item, rater)):
                _upsert(run, "drafts", item, rater, content=content, stamp=time.time())

    def read_draft(self, item: str, rater: str) -> dict[str, Any]:
        """What a rater has chosen and not yet sent."""
        rows = self._query_rows("SELECT content FROM drafts WHERE item = ? AND rater = ?", (item, rater))
        return dict(json.loads(rows[0][0])) if rows else {}

    def answered_item_ids(self, rater: str) -> list[str]:
        """The items that a rater has answered, the newest last."""
        return [row[0] for row in self._query_rows("SELECT item FROM answers WHERE rater = ? ORDER BY stamp", (rater,))]

    def all_answers(self) -> list[RaterAnswer]:
        """Everything that was said and not taken back, in the order it came."""
        sql = "SELECT item, rater, content, seconds, swapped, at FROM answers ORDER BY stamp, item, rater"
        return [
            RaterAnswer(item, rater, **json.loads(content), seconds=seconds, swapped=bool(swapped), at=at)
            for item, rater, content, seconds, swapped, at in self._query_rows(sql, ())
        ]

    def is_held(self, item: str, rater: str) -> bool:
        """Whether an item is kept for a rater to whom it was shown."""
        return bool(self._query_rows("SELECT 1 FROM holds WHERE item = ? AND rater = ?", (item, rater)))

    def hold_chosen_item(
        self, rater: str, choose: Callable[[set[str], dict[str, int], list[str]], str | None]
    ) -> str | None:
        """Hold an item for a rater: `choose` is told what the rater has answered, by how many others each item is
        answered or held, and what the rater holds; nobody else chooses meanwhile."""
        with self._transaction() as run:
            since = time.time() - HOLD
            run("DELETE FROM holds WHERE since < ?", (since,))
            mine = {row[0] for row in run("SELECT item FROM answers WHERE rater = ?", (rater,))}
            busy: dict[str, int] = {}
            for table in ("answers", "holds"):
                for item, n in run(f"SELECT item, COUNT(*) FROM {table} WHERE rater <> ? GROUP BY item", (rater,)):
                    busy[item] = busy.get(item, 0) + n
            held = [row[0] for row in run("SELECT item FROM holds WHERE rater = ? ORDER BY since", (rater,))]
            item = choose(mine, busy, held)
            if item is not None and item not in held:
                _upsert(run, "holds", item, rater, since=time.time())
        return item

    def answer_count_by_item(self) -> dict[str, int]:
        """How many raters have answered each item."""
        return {item: int(n) for item, n in self._query_rows("SELECT item, COUNT(*) FROM answers GROUP BY item", ())}

    def close(self) -> None:
        """Close this thread's connection."""
        connection, self._local.connection = getattr(self._local, "connection", None), None
        if connection is not None:
            connection.close()

    # Connections

    def _note(self, run: Any, kind: str, item: str, rater: str, content: str, at: str) -> None:
        run(
            "INSERT INTO history (id, kind, item, rater, content, at) VALUES (?, ?, ?, ?, ?, ?)",
            (secrets.token_hex(16), kind, item, rater, content, at),
        )

    def _query_rows(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self._raise_store_unavailable():
            return self._retry_on_new_connection(lambda connection: self._execute(connection, sql, values))

    @contextmanager
    def _transaction(self) -> Iterator[Run]:
        """A transaction of which everything is kept or nothing; one at a time."""
        with self._raise_store_unavailable():
            connection = self._retry_on_new_connection(self._begin_transaction)
            try:
                yield lambda sql, values: self._execute(connection, sql, values)
                self._execute(connection, "COMMIT", ())
            except BaseException:
                self._roll_back_or_drop(connection)
                raise
            finally:
                if not self.postgres:
                    self._writing.release()

    def _roll_back_or_drop(self, connection: Any) -> None:
        """End a transaction that failed. Where even that fails the connection goes, and the transaction with it."""
        try:
            if self.postgres or connection.in_transaction:  # SQLite ends some by itself
                self._execute(connection, "ROLLBACK", ())
        except Exception:
            self._drop_connection()

    @contextmanager
    def _raise_store_unavailable(self) -> Iterator[None]:
        """Turn what goes wrong with a disk or a server, and not with us, into `StoreUnavailable`."""
        kind = self.database.OperationalError if self.postgres else sqlite3.DatabaseError
        try:
            yield
        except kind as error:
            if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
                raise
            self._drop_connection()
            full = isinstance(error, self.database.errors.DiskFull) if self.postgres else "is full" in str(error)
            problem = FULL if full else GONE if self.postgres else BROKEN
            raise StoreUnavailable(problem, str(error).partition("\n")[0] or type(error).__name__) from error

    def _drop_connection(self) -> None:
        """Leave this thread's connection; the next request makes a new one."""
        with suppress(Exception):
            self.close()

    def _begin_transaction(self, connection: Any) -> Any:
        if self.postgres:
            self._execute(connection, "BEGIN", ())
            self._execute(connection, "SELECT pg_advisory_xact_lock(7236583)", ())
            return connection
        self._writing.acquire()
        try:
            self._execute(connection, "BEGIN IMMEDIATE", ())
        except BaseException:
            self._writing.release()
            raise
        return connection

    def _retry_on_new_connection(self, does: Callable[[Any], Made]) -> Made:
        """Do something with this thread's connection, with a new one where a server has dropped it."""
        fresh = getattr(self._local, "connection", None) is None
        if fresh:
            self._local.connection = self._connect()
        try:
            return does(self._local.connection)
        except self.database.OperationalError:
            if fresh or not self.postgres:
                raise
            self._drop_connection()
            self._local.connection = self._connect()
            return does(self._local.connection)

    def _connect(self) -> Any:
        if self.postgres:
            patience = {} if "connect_timeout" in self.where else {"connect_timeout": CONNECT_SECONDS}
            connection = self.database.connect(self.where, autocommit=True, **patience)
            connection.execute(f'SET search_path TO "{self.schema}"')
            return connection
        connection = sqlite3.connect(self.where, timeout=30, isolation_level=None)
        for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {setting}")
        return connection

    def _execute(self, connection: Any, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        if self.postgres:
            cursor = connection.execute(sql.replace("?", "%s"), tuple(values) or None)
        else:
            cursor = connection.execute(sql, tuple(values))
        return list(cursor.fetchall()) if cursor.description is not None else []


def _upsert(run: Any, table: str, item: str, rater: str, **values: Any) -> None:
    columns, marks = ", ".join(values), ", ".join("?" for _ in values)
    changes = ", ".join(f"{name} = excluded.{name}" for name in values)
    run(
        f"INSERT INTO {table} (item, rater, {columns}) VALUES (?, ?, {marks}) "
        f"ON CONFLICT (item, rater) DO UPDATE SET {changes}",
        (item, rater, *values.values()),
    )


def _token_digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def _utc_now_text() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
