"""Who may read: anybody on this machine, who has the token, whom a trusted proxy names, or who logs in at a provider.

A browser that has shown a token or has logged in gets a session: a signed cookie that scripts can't read and other
sites can't send. It holds who it is, nothing of the store.
"""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from headwater.web.settings import LOCAL_NAMES, WebSettings
from headwater.web.templates import Templates

OPEN_PATHS: Final = frozenset({"/login", "/login/openid", "/login/callback", "/logout", "/live"})
SESSION_USER: Final = "user"


@dataclass(frozen=True)
class Reader:
    """Somebody who may read."""

    name: str
    way: str
    """How that is known: local, token, proxy, session."""


class AccessControl:
    """Middleware that lets only readers through, and only requests that are meant for this server."""

    def __init__(self, app: ASGIApp, settings: WebSettings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        answer = self._refusal(request)
        await (self._app if answer is None else answer)(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        if not self._is_meant(request):
            words = "this name isn't one of this server's: name it by --name where `headwater web` is started"
            return JSONResponse({"error": "UnknownHost", "message": words}, status_code=421)
        path = request.url.path
        if path in OPEN_PATHS or path.startswith("/static/"):
            return None
        reader = self.reader(request)
        if reader is not None:
            request.scope["reader"] = reader
            return None
        if self._settings.proxy is not None and not self._can_log_in:
            words = "requests come through the proxy that knows its users, and name one"
            return JSONResponse({"error": "Forbidden", "message": words}, status_code=403)
        if _wants_page(request) and self._can_log_in:
            here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/login?next={quote(here, safe='')}", status_code=303)
        words = "send the token as `Authorization: Bearer TOKEN`"
        headers = {"WWW-Authenticate": 'Bearer realm="headwater"'}
        return JSONResponse({"error": "Unauthorized", "message": words}, status_code=401, headers=headers)

    @property
    def _can_log_in(self) -> bool:
        return self._settings.token is not None or self._settings.openid is not None

    def _is_meant(self, request: HTTPConnection) -> bool:
        """Another site can point a name of its own at this address, and let a browser read from here by it."""
        names = {*self._settings.names, self._settings.host}
        host = _host_of(request.headers.get("host", ""))
        return "*" in names or host in names or host in LOCAL_NAMES

    def reader(self, request: HTTPConnection) -> Reader | None:
        """Return who asks, if that is somebody who may."""
        settings = self._settings
        if not settings.has_access_control:
            return Reader("this machine", "local")
        if settings.proxy is not None and (named := self._named_by_proxy(request)):
            return Reader(named, "proxy")
        given = request.headers.get("authorization", "")
        if settings.token is not None and given.lower().startswith("bearer "):
            return Reader("token", "token") if is_token(settings, given[7:].strip()) else None
        user: Any = request.session.get(SESSION_USER) if "session" in request.scope else None
        return Reader(str(user), "session") if user else None

    def _named_by_proxy(self, request: HTTPConnection) -> str | None:
        proxy, peer = self._settings.proxy, request.client
        if proxy is None or peer is None:
            return None
        try:
            address = ipaddress.ip_address(peer.host)
        except ValueError:
            return None
        if not any(address in network for network in proxy.networks):
            return None
        return request.headers.get(proxy.user_header) or None


def login_routes(settings: WebSettings, templates: Templates) -> list[Route]:
    """Return the pages at which somebody logs in and out."""

    def form(message: str, next_path: str, status: int = 200) -> Response:
        has_token, has_openid = settings.token is not None, settings.openid is not None
        words = templates.login(message, next_path, has_token=has_token, has_openid=has_openid)
        return HTMLResponse(words, status_code=status)

    async def login(request: Request) -> Response:
        if request.method == "GET":
            return form("", local_path(request.query_params.get("next", "/")))
        given = await request.form()
        next_path = local_path(str(given.get("next", "/")))
        if not is_token(settings, str(given.get("token", ""))):
            return form("this isn't the token", next_path, 401)
        request.session[SESSION_USER] = "token"
        return RedirectResponse(next_path, status_code=303)

    async def logout(request: Request) -> Response:
        request.session.clear()
        return RedirectResponse("/login", status_code=303)

    return [Route("/login", login, methods=["GET", "POST"]), Route("/logout", logout, methods=["POST"])]


def is_token(settings: WebSettings, given: str) -> bool:
    """Compare in constant time."""
    return settings.token is not None and hmac.compare_digest(settings.token.encode(), given.encode())


def local_path(text: str) -> str:
    """Return where to go after a login: a path of this server, whatever was asked for."""
    is_ours = text.startswith("/") and not text.startswith(("//", "/\\")) and not any(c in text for c in "\r\n\t")
    return text if is_ours else "/"


def _host_of(header: str) -> str:
    """Return the host without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0].lower()


def _wants_page(request: Request) -> bool:
    return (
        request.method == "GET"
        and not request.url.path.endswith(".json")
        and "text/html" in request.headers.get("accept", "")
    )
