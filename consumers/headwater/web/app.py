"""The web application: an address for each page, as HTML and as JSON, and what every answer carries."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headwater.errors import ConfigurationError, HeadwaterError, TransientError
from headwater.lineage.questions.names import AmbiguousNameError, UnknownNameError
from headwater.lineage.store import Store
from headwater.web.access import AccessControl, login_routes
from headwater.web.openapi import describe
from headwater.web.questions import QuestionTimeoutError, StoreQuestions
from headwater.web.settings import WebSettings
from headwater.web.templates import Templates
from headwater.web.views import VIEWS, Given, View

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
}
"""Of every answer. Nothing is fetched from elsewhere, and no script or style stands in a page."""
_STATIC: Final = Path(str(files("headwater.web"))) / "static"
_SHARED: Final = Path(str(files("headwater.lineage.rendering.html")))
_SESSION_SECONDS: Final = 12 * 3600


def create_app(store: Store, settings: WebSettings) -> Starlette:
    """Return the application over an open store."""
    site = _Site(store, settings)
    routes = [
        Route("/", partial(site.page, VIEWS[0])),
        *(Route(f"/{view.path}", partial(site.page, view)) for view in VIEWS),
        *(Route(f"/{view.path}.json", partial(site.data, view)) for view in VIEWS),
        Route("/openapi.json", _openapi),
        Route("/live", _live),
        *login_routes(settings, site.templates),
        *_openid_routes(settings, site.templates),
        *(Route(f"/static/{name}", partial(_shared_file, name)) for name in ("page.css", "page.js")),
        Mount("/static", StaticFiles(directory=_STATIC)),
    ]
    middleware = [
        Middleware(_Headers, is_https=settings.is_https),
        Middleware(
            SessionMiddleware,
            secret_key=secrets.token_urlsafe(32),
            session_cookie="headwater",
            same_site="lax",  # a provider of OpenID Connect sends the browser back from its own site
            max_age=_SESSION_SECONDS,
            https_only=settings.is_https,
        ),
        Middleware(AccessControl, settings=settings),
    ]
    handlers: dict[Any, Callable[[Request, Exception], Awaitable[Response]]] = {
        HeadwaterError: site.error,
        HTTPException: site.error,
        Exception: site.error,
    }
    return Starlette(routes=routes, middleware=middleware, exception_handlers=handlers)


async def _shared_file(name: str, _: Request) -> Response:
    """Return a file that pages without a server have in them, too."""
    return FileResponse(_SHARED / name)


def _openid_routes(settings: WebSettings, templates: Templates) -> list[Route]:
    if settings.openid is None:
        return []
    from headwater.web.openid import openid_routes  # noqa: PLC0415 - Authlib is needed for it alone

    return openid_routes(settings.openid, templates)


async def _live(_: Request) -> Response:
    return Response("alive\n", media_type="text/plain")


async def _openapi(_: Request) -> Response:
    return JSONResponse(describe(VIEWS))


class _Site:
    """Answers requests."""

    def __init__(self, store: Store, settings: WebSettings) -> None:
        self.templates = Templates()
        self._questions = StoreQuestions(store, settings.limits)
        self._limits = settings.limits

    async def page(self, view: View, request: Request) -> Response:
        if "application/json" in request.headers.get("accept", ""):
            return await self.data(view, request)
        given = _given(view, request)
        content = await self._questions.ask(lambda store: view.page(store, given, self._limits))
        return HTMLResponse(self.templates.page(view, given, content, request.url.query))

    async def data(self, view: View, request: Request) -> Response:
        given = _given(view, request)
        text = await self._questions.ask(lambda store: view.json(store, given, self._limits))
        return Response(text, media_type="application/json")

    async def error(self, request: Request, error: Exception) -> Response:
        status = status_of(error)
        is_ours = isinstance(error, HeadwaterError)
        message = str(error) if is_ours else getattr(error, "detail", "something is wrong here: see the server's log")
        if status >= 500 and not is_ours:
            _LOG.error("%s failed", request.url.path, exc_info=error)
        if request.url.path.endswith(".json") or "text/html" not in request.headers.get("accept", ""):
            return JSONResponse({"error": type(error).__name__, "message": message}, status_code=status)
        return HTMLResponse(self.templates.error(status, message), status_code=status)


def _given(view: View, request: Request) -> Given:
    """Return the parameters of an address. One without a value counts as left out: forms send those."""
    given: dict[str, tuple[str, ...]] = {}
    for name, value in request.query_params.multi_items():
        if value:
            given[name] = (*given.get(name, ()), value)
    view.check(given)
    return given


_STATUSES: Final[Mapping[type[Exception], int]] = {
    UnknownNameError: 404,
    AmbiguousNameError: 409,
    QuestionTimeoutError: 504,
    ConfigurationError: 400,
    TransientError: 503,
}


def status_of(error: Exception) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, HTTPException):
        return error.status_code
    return next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 500)


class _Headers:
    """Middleware that adds the headers of every answer."""

    def __init__(self, app: ASGIApp, *, is_https: bool) -> None:
        self._app = app
        self._is_https = is_https

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_https:
            scope["scheme"] = "https"

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                more = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                is_static = scope["path"].startswith("/static/")
                more.append((b"cache-control", b"max-age=300" if is_static else b"no-store"))
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)
