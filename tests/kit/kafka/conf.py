"""How a driver of these tests is configured: as users do it, with librdkafka's patience cut to a second or two."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headwater.listeners.bus import BusOptions

PREFIX: Final = "spark.headwater."
KAFKA: Final = f"{PREFIX}kafka."
IMPATIENT: Final = {
    "socket.timeout.ms": "1500",
    "request.timeout.ms": "1000",
    "socket.connection.setup.timeout.ms": "1500",
    "reconnect.backoff.ms": "50",
    "reconnect.backoff.max.ms": "300",
    "retry.backoff.ms": "50",
    "topic.metadata.refresh.interval.ms": "2000",
    "topic.metadata.refresh.fast.interval.ms": "100",
    "topic.metadata.propagation.max.ms": "2000",
}
"""Each of librdkafka's own time-outs: being away for longer than all of them together takes a few seconds."""
OPTIONS: Final = BusOptions(
    first_backoff=0.05, longest_backoff=1.0, suspended_seconds=1.0, keep_interval=0.1, look_interval=0.5
)
"""As a driver's, but what takes minutes there takes a second."""


def kafka_conf(address: str, topic: str, spools: Path, **more: str) -> dict[str, str]:
    """The flat configuration; `more` stands below the kafka listener's prefix, dots written as underscores."""
    keys = {"bootstrap.servers": address, "topic": topic, **{key.replace("_", "."): more[key] for key in more}}
    return {
        f"{PREFIX}listeners": "kafka",
        f"{PREFIX}spool.dir": str(spools),
        f"{PREFIX}spool.linger": "0",
        **{f"{KAFKA}producer.{key}": value for key, value in IMPATIENT.items()},
        **{f"{KAFKA}{key}": value for key, value in keys.items()},
    }


def producer_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of librdkafka, as they stand in a driver's configuration."""
    return {f"{KAFKA}producer.{key}": value for key, value in settings.items()}
