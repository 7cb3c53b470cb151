"""Logs people in by OpenID Connect: Authlib follows the flow, and we look at the claims that are required."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from authlib.integrations.starlette_client import OAuth, OAuthError
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from headwater.web.access import SESSION_USER, local_path
from headwater.web.settings import OpenIdProvider
from headwater.web.templates import Templates

_NEXT: Final = "next"


def openid_routes(provider: OpenIdProvider, templates: Templates) -> list[Route]:
    """Return the two addresses of the flow."""
    registry = OAuth()
    registry.register(
        "provider",
        server_metadata_url=provider.metadata_url,
        client_id=provider.client_id,
        client_secret=provider.client_secret,
        client_kwargs={"scope": "openid profile email", "code_challenge_method": "S256"},
    )
    client: Any = registry.create_client("provider")

    async def begin(request: Request) -> Response:
        request.session[_NEXT] = local_path(request.query_params.get("next", "/"))
        back: Response = await client.authorize_redirect(request, str(request.url_for("openid_callback")))
        return back

    async def callback(request: Request) -> Response:
        try:
            token = await client.authorize_access_token(request)
        except OAuthError as e:
            return refusal(templates, f"the provider refused: {e.description or e.error}")
        claims: Mapping[str, Any] = token.get("userinfo") or {}
        lacking = lacking_claim(claims, provider.required_claims)
        if lacking is not None:
            return refusal(templates, f"you lack what is required here: {lacking}. Ask who runs this server")
        next_path = local_path(str(request.session.pop(_NEXT, "/")))
        request.session[SESSION_USER] = str(claims.get("email") or claims.get("sub"))
        return RedirectResponse(next_path, status_code=303)

    return [
        Route("/login/openid", begin),
        Route("/login/callback", callback, name="openid_callback"),
    ]


def lacking_claim(claims: Mapping[str, Any], required: Mapping[str, str]) -> str | None:
    """Return the first required claim that somebody hasn't. A claim with several values needs one of them."""
    for name, value in required.items():
        found = claims.get(name)
        values = found if isinstance(found, (list, tuple)) else [found]
        if value not in values:
            return f"{name}={value}"
    return None


def refusal(templates: Templates, message: str) -> Response:
    return HTMLResponse(templates.error(403, message), status_code=403)
