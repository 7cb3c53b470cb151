"""The options of the webhook forwarder, and those of any HTTP target that alerts share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator
from typing_extensions import Self

from headwater.config import Bytes, Config, Seconds

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OWN_HEADERS: Final = frozenset({"content-type", "content-length", "host", "transfer-encoding", "connection", "origin"})
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\x00-\x1f\x7f<>\"{}|\\^`]+")
_DOMAIN: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")


class HttpOptions(Config):
    """Where requests go, by whom they are trusted, and how long they may take."""

    url: str | None = Field(default=None, repr=False)
    """Where requests go, `https://hooks.example/lineage` say. One of url, url.file and url.variable."""
    url_file: str | None = None
    """A file with the URL, where the URL itself is a secret, as Slack's are."""
    url_variable: str | None = None
    """An environment variable with the URL."""
    secret_file: str | None = None
    """A file with the secret that requests are signed with. A second line is a second secret, while one is replaced."""
    secret_variable: str | None = None
    """An environment variable with the same."""
    token_file: str | None = None
    """A file with a bearer token; it is read again when it changes."""
    token_variable: str | None = None
    """An environment variable with the same."""
    header: Mapping[str, str] = Field(default_factory=dict, repr=False)
    """Further headers, `header.X-Tenant` say."""
    ca: str | None = None
    """A file with the certificates that the server's is to be proved by."""
    client_certificate: str | None = None
    """A file with the certificate that the server asks for; it may hold the key too."""
    client_key: str | None = None
    """A file with that certificate's key."""
    proxy: str | None = Field(default=None, repr=False)
    """The URL of a proxy. Variables such as HTTPS_PROXY are not read."""
    request_timeout: Seconds = Field(default=30.0, gt=0, le=240)
    """How long a request may take in all."""

    @field_validator("url", "proxy")
    @classmethod
    def _is_http(cls, url: str | None) -> str | None:
        return None if url is None else checked_url(url)

    @field_validator("header")
    @classmethod
    def _can_be_sent(cls, header: Mapping[str, str]) -> Mapping[str, str]:
        for name, value in header.items():
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError(f"{name!r} can't be the name of a header")
            if name.lower() in _OWN_HEADERS or name.lower().startswith(("ce-", "webhook-")):
                raise ValueError(f"{name} is a header that every request has already: remove it")
            if not value.isascii() or not value.isprintable():
                raise ValueError(f"the value of {name} holds characters that no header can have")
        return header

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if sum(each is not None for each in (self.url, self.url_file, self.url_variable)) != 1:
            raise ValueError("say where requests go, with one of url, url.file and url.variable")
        if self.secret_file is not None and self.secret_variable is not None:
            raise ValueError("secret.file and secret.variable are both there: remove one")
        if self.token_file is not None and self.token_variable is not None:
            raise ValueError("token.file and token.variable are both there: remove one")
        if self.client_key is not None and self.client_certificate is None:
            raise ValueError("client.certificate is missing: name that file beside client.key")
        if any(name.lower() == "authorization" for name in self.header) and (self.token_file or self.token_variable):
            raise ValueError("two settings make the same header: remove header.Authorization")
        return self


class WebhookOptions(HttpOptions):
    """What requests look like."""

    mode: Literal["structured", "binary", "batched"] = "structured"
    """An event as a JSON object; its attributes as headers and its data as the body; or many in a JSON array."""
    source: str = "urn:headwater:events"
    """The source of all events, a URI. Together with an event's id it is unique."""
    max_bytes: Bytes = Field(default=1 << 20, ge=1 << 10)
    """The largest body that is sent. Batches are split; an event that is larger alone is refused."""
    connections: int = Field(default=4, ge=1, le=64)
    """So many requests are under way at once. Events of one key wait for each other; with 1, all do."""
    origin: str | None = None
    """A DNS name for this sender. With it, the receiver is asked for its consent before anything is sent."""
    request_rate: int | None = Field(default=None, ge=1)
    """With `origin`: so many requests a minute are asked for."""

    @field_validator("source")
    @classmethod
    def _is_uri(cls, source: str) -> str:
        if not _ABSOLUTE.fullmatch(source):
            raise ValueError("write a URI, urn:acme:lineage say")
        return source

    @field_validator("origin")
    @classmethod
    def _is_domain(cls, origin: str | None) -> str | None:
        if origin is not None and not _DOMAIN.fullmatch(origin):
            raise ValueError("write a DNS name, headwater.example say")
        return origin

    @model_validator(mode="after")
    def _rate_has_origin(self) -> Self:
        if self.request_rate is not None and self.origin is None:
            raise ValueError("request.rate is there without origin: name who asks for that rate")
        return self


def checked_url(url: str) -> str:
    """Return the URL if requests can go there. A ValueError says what is wrong, without the URL: it may be a secret."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not url.startswith(("http://", "https://")):
        raise ValueError("write it with http:// or https://")
    if not host or port == 0 or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("this is no URL: write https://host/path")
    return url
