"""The application: pages for raters and for whoever runs the project.

A rater's link holds a token; opening it sets a cookie, and everything else goes by that. A rater may see the item that
is held for them, their own answers and the media of the project, and nothing else; media go by random names. The page
of the project (progress, links, files) needs the admin token. Forms carry a signature of project and session. Who sends
wrong tokens, in links or in cookies, has to wait. Where the disk is full or the database gone, the answer is a 503.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import logging
import zipfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from revisit.core import RevisitError, UsageError
from revisit.core.text import package_yaml, pluralize
from revisit.labels import forms
from revisit.labels.export import project_files
from revisit.labels.items import LabelItem
from revisit.labels.label import BACK, GONE, JUDGEABLE
from revisit.labels.project import Project
from revisit.labels.queue import ItemQueue, is_swapped
from revisit.labels.store import Rater, Store, StoreUnavailable
from revisit.labels.tables import rater_rows
from revisit.web.media import media_response
from revisit.web.server import Rates, needs, static_files
from revisit.web.templates import templates

WORDS = package_yaml("revisit.labels", "words.yaml")
Endpoint = Callable[[Any], Awaitable[Any]]


def http_error(status: int, sentence: str) -> Exception:
    """What is raised where a request is not answered; the sentence is said instead."""
    from starlette.exceptions import HTTPException

    return HTTPException(status, sentence, {"retry-after": "10"} if status in (429, 503) else None)


class RaterPages:
    """The pages of a project."""

    def __init__(self, project: Project, store: Store, token: str) -> None:
        self.project, self.store, self.token = project, store, token
        self.queue = ItemQueue(project, store)
        self.name = project.name  # cookies know no ports: two projects, two names
        self.static = static_files(Path(__file__).parent / "static")
        self.asking, self.guessing = Rates(20, 60), Rates(0.2, 12)
        self.templates = templates("revisit.labels")

    def application(self) -> Any:
        """The application, for any server."""
        needs("starlette")
        from starlette.applications import Starlette
        from starlette.routing import Route

        routes: list[tuple[str, str, Callable[[Any, forms.Fields], Any]]] = [
            ("/", "GET", self.home),
            ("/r/{token}", "GET", self.enter),
            ("/work", "GET", self.work),
            ("/guide", "GET", self.guide),
            ("/item/{id}", "GET", self.item),
            ("/item/{id}", "POST", self.submit),
            ("/right/{id}", "GET", self.right),
            ("/draft/{id}", "POST", self.draft),
            ("/undo", "POST", self.undo),
            ("/media/{name}", "GET", self.media),
            ("/static/{name}", "GET", self.asset),
            ("/admin/enter/{token}", "GET", self.enter_admin),
            ("/admin", "GET", self.admin),
            ("/admin/raters", "POST", self.add_raters),
            ("/admin/raters/{id}/{what}", "POST", self.change_rater),
            ("/admin/labels.zip", "GET", self.download),
        ]
        return Starlette(routes=[Route(path, self._guard(does), methods=[method]) for path, method, does in routes])

    # For raters

    def home(self, request: Any, fields: forms.Fields) -> Any:
        rater = self._rater(request)
        tasks = [
            {"id": task, "title": WORDS["tasks"][task], "progress": self.queue.progress(rater, task)}
            for task in self.project.settings.tasks
        ]
        return self._page(request, "home.html", rater=rater, tasks=tasks, guide=self.project.guide)

    def enter(self, request: Any, fields: forms.Fields) -> Any:
        token = request.path_params["token"]
        if self.store.rater_of(token) is None:
            self._slow_down(request)
            raise http_error(404, "This link is not valid (any more). Ask for a new one.")
        return self._with_cookie(self._redirect("/"), "rater", token)

    def guide(self, request: Any, fields: forms.Fields) -> Any:
        return self._page(request, "guide.html", rater=self._rater(request), guide=self.project.guide)

    def work(self, request: Any, fields: forms.Fields) -> Any:
        rater = self._rater(request)
        task = request.query_params.get("task", "")
        item = self.queue.next(rater, task if task in self.project.settings.tasks else "")
        if item is None:
            return self._page(request, "done.html", rater=rater, done=len(self.store.answered_items(rater.id)))
        return self._redirect(f"/item/{item.id}")

    def item(self, request: Any, fields: forms.Fields, problem: str = "", status: int = 200) -> Any:
        rater = self._rater(request)
        item = self._own_item(rater, request.path_params["id"])
        turned = is_swapped(self.project, item, rater.id)
        draft = self.store.draft_of(item.id, rater.id)
        values = dict(fields) if problem else forms.form_values(item, draft, turned)
        cases = [self.project.cases[case_id] for case_id in (reversed(item.cases) if turned else item.cases)]
        shots = [self.project.shots[case.id] for case in cases]
        names = ("left", "right") if len(shots) == 2 else ("",)
        videos = [
            {"src": f"/media/{shot.media}", "fps": shot.fps, "frames": shot.frames, "title": name}
            for shot, name in zip(shots, names, strict=True)
        ]
        first = cases[0]
        target = None if first.target is None else {"name": first.target.name, "box": list(first.target.box)}
        context = {
            "rater": rater, "item": item, "videos": videos, "given": values, "problem": problem,
            "words": _item_texts(item), "title": WORDS["tasks"][item.task],
            "progress": self.queue.progress(rater, item.task), "target": target,
            "aspect": [shots[0].width, shots[0].height], "judgeable": JUDGEABLE, "gone": GONE, "back": BACK,
            "guide": self.project.guide, "can_undo": bool(self.store.answered_items(rater.id)),
        }  # fmt: skip
        return self._page(request, "item.html", status=status, **context)

    def submit(self, request: Any, fields: forms.Fields) -> Any:
        rater = self._rater(request, fields)
        item = self._own_item(rater, request.path_params["id"])
        turned = is_swapped(self.project, item, rater.id)
        try:
            answer = forms.answer_of(
                item, rater.id, fields, turned, [self.project.shots[case_id] for case_id in item.cases]
            )
        except UsageError as error:
            return self.item(request, fields, problem=str(error), status=422)
        try:
            self.store.submit(answer)
        except StoreUnavailable as error:
            with suppress(StoreUnavailable):  # the page with all that was entered, where that much can still be read
                return self.item(request, fields, problem=self._failure_text(request, error), status=503)
            raise
        return self._redirect(f"/right/{item.id}" if item.example else f"/work?task={item.task}")

    def right(self, request: Any, fields: forms.Fields) -> Any:
        """After an example: what was said, what is right, and why."""
        rater = self._rater(request)
        item = self._own_item(rater, request.path_params["id"])
        answer_of_rater = next((a for a in self.store.answers() if a.item == item.id and a.rater == rater.id), None)
        if answer_of_rater is None or not item.example:
            raise http_error(404, "There is no such page.")
        swap = is_swapped(self.project, item, rater.id)
        words = _item_texts(item)

        def as_shown(answer: str) -> str:
            return words.get(forms.shown_answer(item, answer, swap), answer)

        rows = [
            (q.text, as_shown(answer_of_rater.answers.get(q.id, "")), as_shown(item.gold[q.id]))
            for q in item.questions
            if q.id in item.gold
        ]
        return self._page(request, "right.html", rater=rater, rows=rows, note=item.note, task=item.task)

    def draft(self, request: Any, fields: forms.Fields) -> Any:
        from starlette.responses import Response

        rater = self._rater(request, fields)
        item = self._own_item(rater, request.path_params["id"])
        self.store.save_draft(item.id, rater.id, forms.draft_of(item, fields))
        return Response(status_code=204)

    def undo(self, request: Any, fields: forms.Fields) -> Any:
        rater = self._rater(request, fields)
        item = self.store.undo(rater.id)
        return self._redirect("/" if item is None else f"/item/{item}")

    def media(self, request: Any, fields: forms.Fields) -> Any:
        if not self._is_admin(request):
            self._rater(request)
        return media_response(self.project.files, request.path_params["name"], request)

    def asset(self, request: Any, fields: forms.Fields) -> Any:
        from starlette.responses import FileResponse

        path = self.static.get(request.path_params["name"])
        if path is None:
            raise http_error(404, "There is no such file.")
        return FileResponse(path)

    # For whoever runs the project

    def enter_admin(self, request: Any, fields: forms.Fields) -> Any:
        if not hmac.compare_digest(request.path_params["token"].encode(), self.token.encode()):
            self._slow_down(request)
            raise http_error(404, "This link does not work.")
        return self._with_cookie(self._redirect("/admin"), "admin", self.token)

    def admin(self, request: Any, fields: forms.Fields, links: dict[str, str] | None = None, problem: str = "") -> Any:
        self._need_admin(request)
        counts = self.store.counts()
        raters = self.project.settings.raters
        items = [item for item in self.project.items if not item.example]
        full = sum(counts.get(item.id, 0) >= raters for item in items)
        facts = [
            f"{pluralize(len(items), 'item')}, {full} with {raters} or more answers",
            f"{pluralize(sum(counts.values()), 'answer')} so far",
            *(
                f"{WORDS['tasks'][task]}: {pluralize(sum(i.task == task for i in items), 'item')}"
                for task in self.project.settings.tasks
            ),
        ]
        return self._page(
            request, "admin.html", facts=facts, rows=rater_rows(self.project, self.store), links=links or {},
            problem=problem, raters=self.store.raters(), status=422 if problem else 200,
        )  # fmt: skip

    def add_raters(self, request: Any, fields: forms.Fields) -> Any:
        self._need_admin(request, fields)
        names = [name for name in forms.field_value(fields, "names").splitlines() if name.strip()]
        links, problem = {}, ""
        for name in names[:200]:
            try:
                rater, token = self.store.add_rater(name)
                links[rater.name] = self._address(request, f"/r/{token}")
            except StoreUnavailable as error:  # the links of those before are shown nowhere else
                problem = self._failure_text(request, error)
                break
            except UsageError as error:
                problem = str(error)
        return self.admin(request, fields, links, problem)

    def change_rater(self, request: Any, fields: forms.Fields) -> Any:
        self._need_admin(request, fields)
        rater = next((one for one in self.store.raters() if one.id == request.path_params["id"]), None)
        if rater is None or request.path_params["what"] not in ("renew", "close"):
            raise http_error(404, "There is no such rater.")
        if request.path_params["what"] == "close":
            self.store.close_rater(rater.id)
            return self._redirect("/admin")
        return self.admin(request, fields, {rater.name: self._address(request, f"/r/{self.store.renew(rater.id)}")})

    def download(self, request: Any, fields: forms.Fields) -> Any:
        from starlette.responses import Response

        self._need_admin(request)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in project_files(self.project, self.store, self.project.folder).items():
                archive.writestr(name, content)
        headers = {"content-disposition": 'attachment; filename="labels.zip"', "cache-control": "no-store"}
        return Response(buffer.getvalue(), media_type="application/zip", headers=headers)

    # What they share

    def _guard(self, does: Callable[[Any, forms.Fields], Any]) -> Endpoint:
        """The endpoint, with its form read and its rate limited; what is wrong is told by a sentence."""
        from starlette.concurrency import run_in_threadpool

        def answered(request: Any, fields: forms.Fields) -> Any:
            if not request.url.path.startswith(("/media/", "/static/")):
                who = request.cookies.get(f"rater_{self.name}") or request.client.host
                if not self.asking.allow(who):
                    raise http_error(429, "That was too fast. Wait a few seconds and load the page again.")
            return does(request, fields)

        async def endpoint(request: Any) -> Any:
            try:
                fields = forms.parse_fields(await request.body()) if request.method == "POST" else {}
            except UsageError as error:
                raise http_error(400, str(error)) from None
            try:
                return await run_in_threadpool(answered, request, fields)
            except StoreUnavailable as error:
                raise http_error(503, self._failure_text(request, error)) from None
            except RevisitError as error:
                raise http_error(422, str(error)) from None

        return endpoint

    def _failure_text(self, request: Any, error: StoreUnavailable) -> str:
        """Message for raters where labels cannot be read or written; details go to the log."""
        place = getattr(request.scope.get("route"), "path", "")  # a path itself may hold a token
        logging.getLogger(__name__).warning("%s %s: %s", request.method, place, error)
        after = "tell whoever runs the project if that does not help"
        if request.method == "POST":
            advice = "Keep this page open, send it again in a minute"
            return f"This could not be stored: {error.problem}. {advice}, and {after}."
        return f"This page cannot be shown: {error.problem}. Load it again in a minute, and {after}."

    def _page(self, request: Any, template: str, status: int = 200, **content: Any) -> Any:
        from starlette.responses import HTMLResponse

        kind = "admin" if template == "admin.html" else "rater"
        content = {"csrf": self._signature(self._cookie(request, kind)), "problem": "", **content}
        text = self.templates.get_template(template).render(**content)
        return HTMLResponse(text.encode(errors="replace"), status, {"cache-control": "no-store"})

    def _redirect(self, path: str) -> Any:
        from starlette.responses import RedirectResponse

        return RedirectResponse(path, 303)

    def _with_cookie(self, response: Any, kind: str, token: str) -> Any:
        response.set_cookie(
            f"{kind}_{self.name}", token, max_age=90 * 24 * 3600, httponly=True, samesite="lax", path="/"
        )
        return response

    def _cookie(self, request: Any, kind: str) -> str:
        return str(request.cookies.get(f"{kind}_{self.name}", ""))

    def _rater(self, request: Any, form: forms.Fields | None = None) -> Rater:
        """Whose request it is, and of a form, whether they were given it."""
        token = self._cookie(request, "rater")
        rater = self.store.rater_of(token) if token else None
        if rater is None:
            if token:
                self._slow_down(request)
            raise http_error(403, "Open the link that you were given; it identifies you.")
        self._check_signature(request, form, "rater")
        return rater

    def _is_admin(self, request: Any) -> bool:
        token = self._cookie(request, "admin")
        return bool(token) and hmac.compare_digest(token.encode(), self.token.encode())

    def _need_admin(self, request: Any, form: forms.Fields | None = None) -> None:
        if not self._is_admin(request):
            if self._cookie(request, "admin"):
                self._slow_down(request)
            raise http_error(403, "This page is for the project's owner. Open the link that was printed at the start.")
        self._check_signature(request, form, "admin")

    def _own_item(self, rater: Rater, item_id: str) -> LabelItem:
        """An item that is shown to this rater, or that they have answered."""
        item = self.project.item(item_id)
        mine = item is not None and (
            self.store.held_since(item_id, rater.id) is not None or item_id in self.store.answered_items(rater.id)
        )
        if item is None or not mine:
            raise http_error(404, "This is not one of your items. Continue from the first page.")
        return item

    def _signature(self, session: str) -> str:
        return hmac.new(bytes.fromhex(self.project.secret), f"form {session}".encode(), hashlib.sha256).hexdigest()

    def _check_signature(self, request: Any, form: forms.Fields | None, kind: str) -> None:
        expected = self._signature(self._cookie(request, kind))
        if form is not None and not hmac.compare_digest(forms.field_value(form, "csrf").encode(), expected.encode()):
            raise http_error(403, "This form is not one that was given to you. Load the page again.")

    def _slow_down(self, request: Any) -> None:
        if not self.guessing.allow(request.client.host):
            raise http_error(429, "Too many wrong links. Wait a minute.")

    def _address(self, request: Any, path: str) -> str:
        return f"{request.url.scheme}://{request.headers['host']}{path}"


def _item_texts(item: LabelItem) -> dict[str, str]:
    """Answers as they are shown."""
    from revisit.diagnosis.kinds import KINDS

    kinds = {kind_id: kind.title for kind_id, kind in KINDS.items()} | {"none": "nothing goes wrong"}
    if item.task == "failure":
        return kinds
    judged = {"left": "left only", "right": "right only"}
    return {**WORDS["answers"], **{f"{JUDGEABLE}.{name}": text for name, text in judged.items()}}
