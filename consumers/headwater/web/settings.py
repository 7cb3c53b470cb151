"""Where the page is served, and who may read it. Everything is checked before anything is opened."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from headwater.errors import ConfigurationError

Network: TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"
_LEAST_TOKEN: Final = 16
LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, kw_only=True)
class TrustedProxy:
    """A proxy that has made sure who somebody is, and says so in a header."""

    networks: tuple[Network, ...]
    """Where it connects from. A header from elsewhere means nothing."""
    user_header: str = "X-Forwarded-User"


@dataclass(frozen=True, kw_only=True)
class OpenIdProvider:
    """A provider of OpenID Connect that people log in at."""

    metadata_url: str
    """Its `/.well-known/openid-configuration`."""
    client_id: str
    client_secret: str = field(repr=False)
    required_claims: Mapping[str, str] = field(default_factory=dict)
    """Claims that somebody must have: `{"groups": "data-platform"}`. All that the provider knows, if there are none."""


@dataclass(frozen=True, kw_only=True)
class QuestionLimits:
    """How much one question may take, so that a hot table hangs nothing."""

    seconds: float = 10.0
    rows: int = 1_000
    at_once: int = 8
    """How many questions are asked at a time; others wait."""


@dataclass(frozen=True, kw_only=True)
class WebSettings:
    """How `headwater web` serves a store."""

    host: str = "127.0.0.1"
    port: int = 8090
    token: str | None = field(default=None, repr=False)
    proxy: TrustedProxy | None = None
    openid: OpenIdProvider | None = None
    names: tuple[str, ...] = ()
    """The names under which browsers know this server, beside loopback's; `*` is any."""
    is_https: bool = False
    """Whether readers come by https, through a proxy: cookies aren't sent without it then."""
    limits: QuestionLimits = QuestionLimits()

    def __post_init__(self) -> None:
        if not self.is_local and not self.has_access_control:
            raise ConfigurationError(
                f"{self.host} can be reached from other machines, and nothing says who may read: give a token "
                "(--token-file), a proxy that knows its users (--trusted-proxy) or OpenID Connect (--oidc), or serve "
                "127.0.0.1"
            )
        if self.token is not None and len(self.token) < _LEAST_TOKEN:
            raise ConfigurationError(f"a token of less than {_LEAST_TOKEN} characters can be guessed: make it longer")

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        if self.host in LOCAL_NAMES:
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def has_access_control(self) -> bool:
        return any((self.token, self.proxy, self.openid))
