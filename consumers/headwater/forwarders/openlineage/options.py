"""The options of the OpenLineage forwarder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from pydantic import Field, field_validator, model_validator
from typing_extensions import Self

from headwater.config import Config, Seconds

MessageKind: TypeAlias = Literal["run", "job", "dataset"]


class OpenLineageOptions(Config):
    """Where messages go, one of `url`, `bootstrap.servers` and `file`, and which."""

    url: str | None = None
    """Of an HTTP server, `https://marquez:5000` say."""
    endpoint: str = "api/v1/lineage"
    """The path of the server that takes messages."""
    api_key: str | None = Field(default=None, repr=False)
    """Sent as a bearer token."""
    header: Mapping[str, str] = Field(default_factory=dict, repr=False)
    """Further headers, `header.X-Tenant` say."""
    request_timeout: Seconds = Field(default=30.0, gt=0)
    """How long the server may take for an answer."""
    compression: Literal["none", "gzip"] = "none"
    ca: str | None = None
    """A file with the certificates that the server's is to be proved by."""
    bootstrap_servers: str | None = None
    """`host:port` of Kafka brokers, several with commas."""
    topic: str = "openlineage.events"
    producer: Mapping[str, str] = Field(default_factory=dict, repr=False)
    """Whatever librdkafka takes, `producer.security.protocol` say."""
    file: str | None = None
    """Messages are lines of this file."""
    messages: tuple[MessageKind, ...] = ("run", "job", "dataset")
    """Which are sent: there are servers that take no others than `run`."""
    engine_version: str | None = None
    """What is said of Spark's version where an event doesn't say it. Without it nothing is said there."""

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("http://", "https://")):
            raise ValueError("write it with http:// or https://")
        return url

    @model_validator(mode="after")
    def _goes_somewhere(self) -> Self:
        if sum(place is not None for place in (self.url, self.bootstrap_servers, self.file)) != 1:
            raise ValueError("say where messages go, with one of url, bootstrap.servers and file")
        return self
