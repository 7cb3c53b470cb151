"""The options of a DataHub forwarder: where proposals go, and what datasets are called there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from datahub.emitter.kafka_emitter import DEFAULT_MCP_KAFKA_TOPIC
from datahub.emitter.mce_builder import ALL_ENV_TYPES, DEFAULT_ENV, DEFAULT_FLOW_CLUSTER
from pydantic import Field, field_validator, model_validator
from typing_extensions import Self

from headwater.config import Config, Seconds

_RESERVED: Final = ("(", ")", ",", "\N{SYMBOL FOR UNIT SEPARATOR}")
"""Characters that have a meaning of their own in a urn."""


class DataHubNames(Config):
    """What datasets, jobs and their containers are called in DataHub."""

    env: str = DEFAULT_ENV
    """DataHub's environment of all datasets: PROD, DEV, TEST ..."""
    cluster: str = DEFAULT_FLOW_CLUSTER
    """The cluster in the urns of data flows."""
    platform: Mapping[str, str] = Field(default_factory=dict)
    """DataHub's platform of a catalog, or of a format: `platform.lake = glue`, `platform.parquet = athena`."""
    instance: Mapping[str, str] = Field(default_factory=dict)
    """The platform instance of a catalog, of a format or of a platform: `instance.lake = emea`."""
    lowercase: bool = False
    """Whether the names of datasets are written in lower case, as `convert_urns_to_lowercase` of DataHub's sources."""

    @field_validator("env")
    @classmethod
    def _is_an_environment(cls, env: str) -> str:
        if env not in ALL_ENV_TYPES:
            raise ValueError(f"write one of {', '.join(sorted(ALL_ENV_TYPES))}")
        return env

    @field_validator("cluster", "platform", "instance")
    @classmethod
    def _fits_a_urn(cls, value: str | Mapping[str, str]) -> str | Mapping[str, str]:
        texts = (value,) if isinstance(value, str) else value.values()
        if any(not text or any(each in text for each in _RESERVED) for text in texts):
            raise ValueError("it is a part of a urn: it can't be empty or hold a comma or a bracket")
        return value


class DataHubConfig(DataHubNames):
    """A forwarder's own section. One of `url`, `bootstrap.servers` and `directory` says where it sends."""

    url: str | None = None
    """DataHub's metadata service: http://datahub-gms:8080."""
    token: str | None = Field(default=None, repr=False)
    """A personal access token."""
    request_timeout: Annotated[Seconds, Field(gt=0)] = 30.0
    """How long an answer, or an acknowledgement of Kafka, may take."""
    mode: Literal["sync", "async"] = "sync"
    """Whether the service answers when a proposal is stored, or when it is in its own queue."""
    ca: Path | None = None
    """A file with the certificates that the service's is checked against."""
    header: Mapping[str, str] = Field(default_factory=dict, repr=False)
    """Further headers of each request."""

    bootstrap_servers: str | None = None
    """`host:port` of brokers: proposals go to DataHub's topic."""
    topic: str = DEFAULT_MCP_KAFKA_TOPIC
    schema_registry: Mapping[str, str] = Field(default_factory=dict, repr=False)
    """`schema.registry.url`, and whatever else Confluent's client of a schema registry takes."""
    producer: Mapping[str, str] = Field(default_factory=dict, repr=False)
    """Whatever librdkafka takes: `producer.security.protocol` ..."""

    directory: Path | None = None
    """A directory for files that `datahub ingest` loads with its source `file`."""

    @model_validator(mode="after")
    def _sends_to_one_place(self) -> Self:
        if sum(each is not None for each in (self.url, self.bootstrap_servers, self.directory)) != 1:
            raise ValueError("write one of url, bootstrap.servers and directory: it says where proposals go")
        if self.bootstrap_servers is not None and "url" not in self.schema_registry:
            raise ValueError("with bootstrap.servers write schema.registry.url too: DataHub's topic is Avro")
        return self
