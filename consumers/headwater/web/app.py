"""The web application: an address for each page, as HTML and as JSON, and what every answer carries."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headwater.errors import ConfigurationError, HeadwaterError, TransientError
from headwater.lineage.questions.names import AmbiguousNameError, UnknownNameError
from headwater.lineage.store import Store
from headwater.web.access import AccessControl
from headwater.web.questions import QuestionTimeoutError, StoreQuestions
from headwater.web.settings import WebSettings
from headwater.web.views import VIEWS, View

_LOG: Final = logging.getLogger(__name__)
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer. Nothing is fetched from elsewhere, and no script or style stands in a page."""
_HERE: Final = Path(str(files("headwater.web")))


def create_app(store: Store, settings: WebSettings) -> Starlette:
    """Return the application over an open store."""
    site = _Site(StoreQuestions(store, settings.limits), settings, _environment())
    routes = [
        Route("/", partial(site.page, VIEWS[0])),
        *(Route(f"/{view.name}", partial(site.page, view)) for view in VIEWS),
        *(Route(f"/{view.name}.json", partial(site.data, view)) for view in VIEWS),
        Route("/live", _live),
        Mount("/static", StaticFiles(directory=_HERE / "static")),
    ]
    middleware = [
        Middleware(_Headers),
        Middleware(
            SessionMiddleware,
            secret_key=secrets.token_urlsafe(32),
            session_cookie="headwater",
            same_site="strict",
            max_age=12 * 3600,
        ),
        Middleware(AccessControl, settings=settings),
    ]
    handlers: dict[Any, Callable[[Request, Exception], Awaitable[Response]]] = {
        HeadwaterError: site.error,
        HTTPException: site.error,
        Exception: site.error,
    }
    return Starlette(routes=routes, middleware=middleware, exception_handlers=handlers)


async def _live(_: Request) -> Response:
    return Response("alive\n", media_type="text/plain")


@dataclass(frozen=True)
class _Site:
    """Answers requests."""

    questions: StoreQuestions
    settings: WebSettings
    templates: Environment

    async def page(self, view: View, request: Request) -> Response:
        if "application/json" in request.headers.get("accept", ""):
            return await self.data(view, request)
        query = view.parse(dict(request.query_params))
        content = await self.questions.ask(lambda connection: view.ask(connection, query, self.settings.limits))
        given = {"view": view, "views": VIEWS, "query": query, "content": content, "command": view.command(query)}
        json_address = f"/{view.name}.json" + (f"?{request.url.query}" if request.url.query else "")
        words = self.templates.get_template(f"{view.name}.html").render(**given, json_address=json_address)
        return HTMLResponse(words)

    async def data(self, view: View, request: Request) -> Response:
        query = view.parse(dict(request.query_params))
        content = await self.questions.ask(lambda connection: view.ask(connection, query, self.settings.limits))
        return Response(content.model_dump_json(), media_type="application/json")

    async def error(self, request: Request, error: Exception) -> Response:
        status = status_of(error)
        message = str(error) if isinstance(error, (HeadwaterError, HTTPException)) else "see the server's log"
        if status >= 500 and not isinstance(error, HeadwaterError):
            _LOG.error("a page failed", exc_info=error)
        if request.url.path.endswith(".json") or "text/html" not in request.headers.get("accept", ""):
            return JSONResponse({"error": type(error).__name__, "message": message}, status_code=status)
        given = {"views": VIEWS, "status": status, "message": message}
        return HTMLResponse(self.templates.get_template("error.html").render(**given), status_code=status)


def status_of(error: Exception) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, HTTPException):
        return error.status_code
    if isinstance(error, UnknownNameError):
        return 404
    if isinstance(error, AmbiguousNameError):
        return 409
    if isinstance(error, QuestionTimeoutError):
        return 504
    if isinstance(error, ConfigurationError):
        return 400
    return 503 if isinstance(error, TransientError) else 500


def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


class _Headers:
    """Middleware that adds the headers of every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                more = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)
