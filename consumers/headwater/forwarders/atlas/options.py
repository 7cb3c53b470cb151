"""The options of an Atlas forwarder: where changes go, and what is called how there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, field_validator, model_validator
from typing_extensions import Self

from headwater.config import Config, Seconds

_SMALLEST_MESSAGE: Final = 500


class AtlasNames(Config):
    """How qualified names end."""

    namespace: Annotated[str, Field(min_length=1)] = "primary"
    """What is behind the @ of qualified names: `atlas.metadata.namespace` of Atlas's other hooks."""

    @field_validator("namespace")
    @classmethod
    def _has_no_separator(cls, namespace: str) -> str:
        if "@" in namespace:
            raise ValueError("it stands behind the last @ of a qualified name, and can't hold one")
        return namespace


class AtlasConfig(AtlasNames):
    """A forwarder's own section. With `bootstrap.servers` entities go to Atlas's topic, else to its REST API."""

    url: str | None = None
    """Atlas's server: http://atlas:21000."""
    user: str | None = None
    password: str | None = Field(default=None, repr=False)
    token: str | None = Field(default=None, repr=False)
    """A bearer token, for a gateway in front of Atlas."""
    ca: Path | None = None
    """A file with the certificates that the server's is checked against."""
    header: Mapping[str, str] = Field(default_factory=dict, repr=False)
    """Further headers of each request."""
    request_timeout: Annotated[Seconds, Field(gt=0)] = 50.0
    """How long an answer, or an acknowledgement of Kafka, may take."""
    register_types: bool = True
    """Whether missing type definitions are registered, by `url`."""

    bootstrap_servers: str | None = None
    """`host:port` of brokers: entities go to Atlas's topic."""
    topic: str = "ATLAS_HOOK"
    message_bytes: Annotated[int, Field(ge=_SMALLEST_MESSAGE)] = 1_000_000
    """A larger message is compressed, and split if that isn't enough: `atlas.notification.message.max.length.bytes`."""
    compression: bool = True
    """Whether a message that is too large is compressed before it is split."""
    producer: Mapping[str, str] = Field(default_factory=dict, repr=False)
    """Whatever librdkafka takes: `producer.security.protocol` ..."""

    @model_validator(mode="after")
    def _has_somewhere_to_send(self) -> Self:
        if self.url is None and self.bootstrap_servers is None:
            raise ValueError("write url, or bootstrap.servers, or both: it says where changes go")
        if self.url is None and self.register_types:
            raise ValueError(
                "write url too, because type definitions are registered there; or register.types = false, where that "
                "was done already"
            )
        if (self.user is None) != (self.password is None):
            raise ValueError("write both or neither of user and password")
        if self.user is not None and self.token is not None:
            raise ValueError("there are two ways to log in: remove one")
        return self
