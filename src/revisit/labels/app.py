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
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from revisit.core import RevisitError, UsageError
from revisit.core.optional import import_optional
from revisit.core.text import count_and_noun
from revisit.diagnosis.kinds import KINDS
from revisit.labels import forms
from revisit.labels.items import WORDS, LabelItem
from revisit.labels.label import BACK, GONE, JUDGEABLE
from revisit.labels.label_files import labels_of_project, project_export_files
from revisit.labels.project import Project
from revisit.labels.queue import ItemQueue, is_swapped
from revisit.labels.store import Rater, Store, StoreUnavailable
from revisit.labels.tables import rater_rows
from revisit.web.media import media_response
from revisit.web.server import Rates, static_files
from revisit.web.templates import template_environment

Endpoint = Callable[[Any, forms.Fields], Any]


def make_http_exception(status: int, sentence: str) -> Exception:
    """What is raised where a request is not answered; the sentence is said instead."""
    from starlette.exceptions import HTTPException

    return HTTPException(status, sentence, {"retry-after": "10"} if status in (429, 503) else None)


class RaterPages:
    """The pages of a project."""

    def __init__(self, project: Project, store: Store, token: str) -> None:
        self.project, self.store, self.token = project, store, token
        self.queue = ItemQueue(project, store)
        self.name = project.hashed_name  # cookies know no ports: two projects, two names
        self.static = static_files(Path(__file__).parent / "static")
        self.asking, self.guessing = Rates(20, 60), Rates(0.2, 12)
        self.templates = template_environment("revisit.labels")

    def make_application(self) -> Any:
        """The application, for any server."""
        import_optional("starlette", "annotate")
        from starlette.applications import Starlette
        from starlette.routing import Route

        routes: list[tuple[str, str, Endpoint]] = [
            ("/", "GET", self.show_home),
            ("/r/{token}", "GET", self.enter_with_token),
            ("/work", "GET", self.redirect_to_next_item),
            ("/guide", "GET", self.show_guide),
            ("/item/{id}", "GET", self.show_item),
            ("/item/{id}", "POST", self.submit_answer),
            ("/right/{id}", "GET", self.show_right_answers),
            ("/draft/{id}", "POST", self.save_item_draft),
            ("/undo", "POST", self.undo_last_answer),
            ("/media/{name}", "GET", self.send_media),
            ("/static/{name}", "GET", self.send_static_file),
            ("/admin/enter/{token}", "GET", self.enter_admin_with_token),
            ("/admin", "GET", self.show_admin),
            ("/admin/raters", "POST", self.add_raters),
            ("/admin/raters/{id}/{what}", "POST", self.renew_or_close_rater),
            ("/admin/labels.zip", "GET", self.download_labels_zip),
        ]
        return Starlette(
            routes=[Route(path, self._guarded_endpoint(does), methods=[method]) for path, method, does in routes]
        )

    # For raters

    def show_home(self, request: Any, fields: forms.Fields) -> Any:
        rater = self._require_rater(request)
        tasks = [
            {"id": task, "title": WORDS["tasks"][task], "progress": self.queue.rater_progress(rater, task)}
            for task in self.project.settings.tasks
        ]
        return self._render_page(request, "home.html", rater=rater, tasks=tasks, guide=self.project.guide)

    def enter_with_token(self, request: Any, fields: forms.Fields) -> Any:
        token = request.path_params["token"]
        if self.store.find_rater_by_token(token) is None:
            self._limit_wrong_tokens(request)
            raise make_http_exception(404, "This link is not valid (any more). Ask for a new one.")
        return self._set_token_cookie(self._redirect_response("/"), "rater", token)

    def show_guide(self, request: Any, fields: forms.Fields) -> Any:
        return self._render_page(request, "guide.html", rater=self._require_rater(request), guide=self.project.guide)

    def redirect_to_next_item(self, request: Any, fields: forms.Fields) -> Any:
        rater = self._require_rater(request)
        task = request.query_params.get("task", "")
        item = self.queue.hold_next_item(rater, task if task in self.project.settings.tasks else "")
        if item is None:
            done = len(self.store.answered_item_ids(rater.id))
            return self._render_page(request, "done.html", rater=rater, done=done)
        return self._redirect_response(f"/item/{item.id}")

    def show_item(self, request: Any, fields: forms.Fields, problem: str = "", status: int = 200) -> Any:
        rater = self._require_rater(request)
        item = self._require_own_item(rater, request.path_params["id"])
        turned = is_swapped(self.project, item, rater.id)
        draft = self.store.read_draft(item.id, rater.id)
        values = dict(fields) if problem else forms.fields_of_draft(item, draft, turned)
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
            "words": _text_by_answer(item), "title": WORDS["tasks"][item.task],
            "progress": self.queue.rater_progress(rater, item.task), "target": target,
            "aspect": [shots[0].width, shots[0].height], "judgeable": JUDGEABLE, "gone": GONE, "back": BACK,
            "guide": self.project.guide, "can_undo": bool(self.store.answered_item_ids(rater.id)),
        }  # fmt: skip
        return self._render_page(request, "item.html", status=status, **context)

    def submit_answer(self, request: Any, fields: forms.Fields) -> Any:
        rater = self._require_rater(request, fields)
        item = self._require_own_item(rater, request.path_params["id"])
        turned = is_swapped(self.project, item, rater.id)
        shots = [self.project.shots[case_id] for case_id in item.cases]
        try:
            answer = forms.parse_item_answer(item, rater.id, fields, turned, shots)
        except UsageError as error:
            return self.show_item(request, fields, problem=str(error), status=422)
        try:
            self.store.submit(answer)
        except StoreUnavailable as error:
            with suppress(StoreUnavailable):  # the page with all that was entered, where that much can still be read
                return self.show_item(request, fields, problem=self._failure_text(request, error), status=503)
            raise
        return self._redirect_response(f"/right/{item.id}" if item.example else f"/work?task={item.task}")

    def show_right_answers(self, request: Any, fields: forms.Fields) -> Any:
        """After an example: what was said, what is right, and why."""
        rater = self._require_rater(request)
        item = self._require_own_item(rater, request.path_params["id"])
        answer_of_rater = next((a for a in self.store.all_answers() if a.item == item.id and a.rater == rater.id), None)
        if answer_of_rater is None or not item.example:
            raise make_http_exception(404, "There is no such page.")
        swap = is_swapped(self.project, item, rater.id)
        words = _text_by_answer(item)
        rows = []
        for question in item.questions:
            if question.id in item.gold:
                answers = answer_of_rater.answers.get(question.id, ""), item.gold[question.id]
                rows.append((question.text, *(words.get(forms.answer_as_shown(item, a, swap), a) for a in answers)))
        return self._render_page(request, "right.html", rater=rater, rows=rows, note=item.note, task=item.task)

    def save_item_draft(self, request: Any, fields: forms.Fields) -> Any:
        from starlette.responses import Response

        rater = self._require_rater(request, fields)
        item = self._require_own_item(rater, request.path_params["id"])
        self.store.save_draft(item.id, rater.id, forms.draft_json(item, fields))
        return Response(status_code=204)

    def undo_last_answer(self, request: Any, fields: forms.Fields) -> Any:
        rater = self._require_rater(request, fields)
        item = self.store.undo_last_answer(rater.id)
        return self._redirect_response("/" if item is None else f"/item/{item}")

    def send_media(self, request: Any, fields: forms.Fields) -> Any:
        if not self._is_admin(request):
            self._require_rater(request)
        return media_response(self.project.files, request.path_params["name"])

    def send_static_file(self, request: Any, fields: forms.Fields) -> Any:
        from starlette.responses import FileResponse

        path = self.static.get(request.path_params["name"])
        if path is None:
            raise make_http_exception(404, "There is no such file.")
        return FileResponse(path)

    # For whoever runs the project

    def enter_admin_with_token(self, request: Any, fields: forms.Fields) -> Any:
        if not hmac.compare_digest(request.path_params["token"].encode(), self.token.encode()):
            self._limit_wrong_tokens(request)
            raise make_http_exception(404, "This link does not work.")
        return self._set_token_cookie(self._redirect_response("/admin"), "admin", self.token)

    def show_admin(
        self, request: Any, fields: forms.Fields, links: dict[str, str] | None = None, problem: str = ""
    ) -> Any:
        self._require_admin(request)
        counts = self.store.answer_count_by_item()
        raters = self.project.settings.raters
        items = [item for item in self.project.items if not item.example]
        full = sum(counts.get(item.id, 0) >= raters for item in items)
        facts = [
            f"{count_and_noun(len(items), 'item')}, {full} with {raters} or more answers",
            f"{count_and_noun(sum(counts.values()), 'answer')} so far",
        ]
        for task in self.project.settings.tasks:
            facts.append(f"{WORDS['tasks'][task]}: {count_and_noun(sum(i.task == task for i in items), 'item')}")
        rows = rater_rows(self.store.raters(), labels_of_project(self.project, self.store))
        return self._render_page(
            request, "admin.html", facts=facts, rows=rows, links=links or {}, problem=problem,
            raters=self.store.raters(), status=422 if problem else 200,
        )  # fmt: skip

    def add_raters(self, request: Any, fields: forms.Fields) -> Any:
        self._require_admin(request, fields)
        names = [name for name in forms.field_value(fields, "names").splitlines() if name.strip()]
        links, problem = {}, ""
        for name in names[:200]:
            try:
                rater, token = self.store.add_rater(name)
                links[rater.name] = self._absolute_url(request, f"/r/{token}")
            except StoreUnavailable as error:  # the links of those before are shown nowhere else
                problem = self._failure_text(request, error)
                break
            except UsageError as error:
                problem = str(error)
        return self.show_admin(request, fields, links, problem)

    def renew_or_close_rater(self, request: Any, fields: forms.Fields) -> Any:
        self._require_admin(request, fields)
        rater = next((one for one in self.store.raters() if one.id == request.path_params["id"]), None)
        what = request.path_params["what"]
        if rater is None or what not in ("renew", "close"):
            raise make_http_exception(404, "There is no such rater.")
        if what == "close":
            self.store.close_rater(rater.id)
            return self._redirect_response("/admin")
        link = self._absolute_url(request, f"/r/{self.store.renew_token(rater.id)}")
        return self.show_admin(request, fields, {rater.name: link})

    def download_labels_zip(self, request: Any, fields: forms.Fields) -> Any:
        from starlette.responses import Response

        self._require_admin(request)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in project_export_files(self.project, self.store, self.project.folder).items():
                archive.writestr(name, content)
        headers = {"content-disposition": 'attachment; filename="labels.zip"', "cache-control": "no-store"}
        return Response(buffer.getvalue(), media_type="application/zip", headers=headers)

    # What they share

    def _guarded_endpoint(self, does: Endpoint) -> Callable[[Any], Any]:
        """The endpoint, with its form read and its rate limited; what is wrong is told by a sentence."""
        from starlette.concurrency import run_in_threadpool

        def answer_within_rate(request: Any, fields: forms.Fields) -> Any:
            if not request.url.path.startswith(("/media/", "/static/")):
                who = request.cookies.get(f"rater_{self.name}") or request.client.host
                if not self.asking.take_if_allowed(who):
                    raise make_http_exception(429, "That was too fast. Wait a few seconds and load the page again.")
            return does(request, fields)

        async def handle_request(request: Any) -> Any:
            try:
                fields = forms.parse_fields(await request.body()) if request.method == "POST" else {}
            except UsageError as error:
                raise make_http_exception(400, str(error)) from None
            try:
                return await run_in_threadpool(answer_within_rate, request, fields)
            except StoreUnavailable as error:
                raise make_http_exception(503, self._failure_text(request, error)) from None
            except RevisitError as error:
                raise make_http_exception(422, str(error)) from None

        return handle_request

    def _failure_text(self, request: Any, error: StoreUnavailable) -> str:
        """Message for raters where labels cannot be read or written; details go to the log."""
        place = getattr(request.scope.get("route"), "path", "")  # a path itself may hold a token
        logging.getLogger(__name__).warning("%s %s: %s", request.method, place, error)
        after = "tell whoever runs the project if that does not help"
        if request.method == "POST":
            advice = "Keep this page open, send it again in a minute"
            return f"This could not be stored: {error.problem}. {advice}, and {after}."
        return f"This page cannot be shown: {error.problem}. Load it again in a minute, and {after}."

    def _render_page(self, request: Any, template: str, status: int = 200, **content: Any) -> Any:
        from starlette.responses import HTMLResponse

        kind = "admin" if template == "admin.html" else "rater"
        content = {"csrf": self._form_signature(self._read_cookie(request, kind)), "problem": "", **content}
        text = self.templates.get_template(template).render(**content)
        return HTMLResponse(text.encode(errors="replace"), status, {"cache-control": "no-store"})

    def _redirect_response(self, path: str) -> Any:
        from starlette.responses import RedirectResponse

        return RedirectResponse(path, 303)

    def _set_token_cookie(self, response: Any, kind: str, token: str) -> Any:
        response.set_cookie(
            f"{kind}_{self.name}", token, max_age=90 * 24 * 3600, httponly=True, samesite="lax", path="/"
        )
        return response

    def _read_cookie(self, request: Any, kind: str) -> str:
        return str(request.cookies.get(f"{kind}_{self.name}", ""))

    def _require_rater(self, request: Any, form: forms.Fields | None = None) -> Rater:
        """Whose request it is, and of a form, whether they were given it."""
        token = self._read_cookie(request, "rater")
        rater = self.store.find_rater_by_token(token) if token else None
        if rater is None:
            if token:
                self._limit_wrong_tokens(request)
            raise make_http_exception(403, "Open the link that you were given; it identifies you.")
        self._require_form_signature(request, form, "rater")
        return rater

    def _is_admin(self, request: Any) -> bool:
        token = self._read_cookie(request, "admin")
        return bool(token) and hmac.compare_digest(token.encode(), self.token.encode())

    def _require_admin(self, request: Any, form: forms.Fields | None = None) -> None:
        if not self._is_admin(request):
            if self._read_cookie(request, "admin"):
                self._limit_wrong_tokens(request)
            raise make_http_exception(403, "This page is for the project's owner. Open the link printed at the start.")
        self._require_form_signature(request, form, "admin")

    def _require_own_item(self, rater: Rater, item_id: str) -> LabelItem:
        """An item that is shown to this rater, or that they have answered."""
        item = self.project.item_by_id.get(item_id)
        mine = self.store.is_held(item_id, rater.id) or item_id in self.store.answered_item_ids(rater.id)
        if item is None or not mine:
            raise make_http_exception(404, "This is not one of your items. Continue from the first page.")
        return item

    def _form_signature(self, session: str) -> str:
        return hmac.new(bytes.fromhex(self.project.secret), f"form {session}".encode(), hashlib.sha256).hexdigest()

    def _require_form_signature(self, request: Any, form: forms.Fields | None, kind: str) -> None:
        expected = self._form_signature(self._read_cookie(request, kind))
        if form is not None and not hmac.compare_digest(forms.field_value(form, "csrf").encode(), expected.encode()):
            raise make_http_exception(403, "This form is not one that was given to you. Load the page again.")

    def _limit_wrong_tokens(self, request: Any) -> None:
        if not self.guessing.take_if_allowed(request.client.host):
            raise make_http_exception(429, "Too many wrong links. Wait a minute.")

    def _absolute_url(self, request: Any, path: str) -> str:
        return f"{request.url.scheme}://{request.headers['host']}{path}"


def _text_by_answer(item: LabelItem) -> dict[str, str]:
    """Answers as they are shown."""
    if item.task != "failure":
        return dict(WORDS["answers"])
    return {kind_id: kind.title for kind_id, kind in KINDS.items()} | {"none": "nothing goes wrong"}
