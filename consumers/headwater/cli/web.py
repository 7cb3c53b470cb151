"""`headwater web`: the page over a store, for browsers and, as JSON, for programs."""

from __future__ import annotations

import ipaddress
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from headwater.cli.bus import host_and_port
from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import VARIABLES, Flags, count, pair
from headwater.cli.output import CommandOutput
from headwater.cli.service import add_logging, logging_as
from headwater.cli.store import add_store, open_given_store
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.web.settings import OpenIdProvider, TrustedProxy, WebSettings

_ADDRESS: Final = "127.0.0.1:8090"


_SECRETS: Final = {
    "token-file": "HEADWATER_WEB_TOKEN_FILE",
    "oidc-secret-file": "HEADWATER_WEB_OIDC_SECRET_FILE",
}


class WebFlags(Flags):
    """Its secrets have variables."""

    variables: ClassVar[Mapping[str, str]] = {**VARIABLES, **_SECRETS}


def _serving(parser: Flags) -> None:
    parser.flag("listen", host_and_port, _ADDRESS, "where it is served", "HOST:PORT")
    parser.flags("name", str, "a name under which browsers know this server, beside the host's; * is any", "NAME")
    parser.switch("https", "readers come by https, through a proxy that has the certificate")
    parser.flag("question-seconds", count, "10", "how long one question may take", "N")
    parser.flag("rows", count, "1000", "how many rows one answer may have", "N")
    parser.switch("open", "open the page in a browser")


def _access(parser: Flags) -> None:
    parser.flag("token-file", Path, None, "a file with the token that readers have to show", "FILE")
    text = "the network of a proxy that knows its users, such as 10.0.0.0/24"
    parser.flags("trusted-proxy", ipaddress.ip_network, text, "NETWORK")
    parser.flag("user-header", str, "X-Forwarded-User", "the header in which that proxy names the user", "HEADER")
    text = "log in by OpenID Connect: the address of the provider's openid-configuration"
    parser.flag("oidc", str, None, text, "URL")
    parser.flag("oidc-client", str, None, "the client's id there", "ID")
    parser.flag("oidc-secret-file", Path, None, "a file with the client's secret", "FILE")
    parser.flags("oidc-require", pair, "a claim that somebody must have, such as groups=data", "CLAIM=VALUE")


@command(
    """Serve the page over a store: read-only, on 127.0.0.1 unless told otherwise. Each page has an address that can be
sent, names the command that gives the same, and is JSON with .json behind its path.

An address that other machines can reach needs --token-file, --trusted-proxy or --oidc.""",
    "headwater web --store lineage.db",
    "headwater web --listen 0.0.0.0:8090 --name lineage.example.com --token-file /run/secrets/token",
    flags=[add_store, _serving, _access, add_logging],
    parser=WebFlags,
    outputs=("text",),
)
def web(given: Namespace, output: CommandOutput) -> int:
    import uvicorn  # noqa: PLC0415 - the extra `web` brings it

    from headwater.web import create_app  # noqa: PLC0415

    settings = _settings(given)
    with logging_as(given.log_format, given.log_level), open_given_store(given) as store:
        config = uvicorn.Config(
            create_app(store, settings),
            host=settings.host,
            port=settings.port,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
        )
        server = uvicorn.Server(config)
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        where = f"http://{host}:{settings.port}/"
        output.note(f"the page is at {where}; Ctrl-C ends it")
        sys.stdout.flush()
        if given.open:
            import webbrowser  # noqa: PLC0415

            webbrowser.open(where)
        server.run()
    return Exit.DONE


def _settings(given: Namespace) -> WebSettings:
    from headwater.web.settings import QuestionLimits, WebSettings  # noqa: PLC0415

    host, port = given.listen
    return WebSettings(
        host=host,
        port=port,
        token=_secret(given.token_file, "--token-file"),
        proxy=_proxy(given),
        openid=_openid(given),
        names=tuple(given.name),
        is_https=given.https,
        limits=QuestionLimits(seconds=float(given.question_seconds), rows=given.rows),
    )


def _proxy(given: Namespace) -> TrustedProxy | None:
    from headwater.web.settings import TrustedProxy  # noqa: PLC0415

    if not given.trusted_proxy:
        return None
    return TrustedProxy(networks=tuple(given.trusted_proxy), user_header=given.user_header)


def _openid(given: Namespace) -> OpenIdProvider | None:
    from headwater.web.settings import OpenIdProvider  # noqa: PLC0415

    if given.oidc is None:
        return None
    secret = _secret(given.oidc_secret_file, "--oidc-secret-file")
    if given.oidc_client is None or secret is None:
        raise ConfigurationError("--oidc needs the client, too: give --oidc-client and --oidc-secret-file")
    claims = dict(given.oidc_require)
    return OpenIdProvider(
        metadata_url=given.oidc, client_id=given.oidc_client, client_secret=secret, required_claims=claims
    )


def _secret(path: Path | None, flag: str) -> str | None:
    if path is None:
        return None
    try:
        found = path.read_text(encoding="utf-8").strip()
    except OSError as e:
        raise ConfigurationError(f"{flag} {path} can't be read: {e.strerror}") from e
    if not found:
        raise ConfigurationError(f"{flag} {path} is empty")
    return found
