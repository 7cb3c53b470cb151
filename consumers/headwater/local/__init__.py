"""Real servers on one machine, without Docker and without root: for tests, and for `headwater dev up`.

    from headwater.local import kafka, postgres

    with kafka() as broker, postgres() as database:
        print(broker.address, database.address)

`choose_server` says where each server comes from. Local servers are child processes on 127.0.0.1. They end with `stop`
or at exit, and a watchdog ends them when this process is killed. Downloads happen once, into the user's cache.
"""

from __future__ import annotations

from headwater.local.cache import cache_directory
from headwater.local.choice import (
    ServerChoice,
    ServerKind,
    Stack,
    choose_server,
    kafka,
    mariadb,
    postgres,
    prefetch,
    service,
)
from headwater.local.errors import (
    AddressError,
    DamagedDownloadError,
    FetchError,
    MissingRequirementError,
    NotOursError,
    PortTakenError,
    StartError,
)
from headwater.local.java import JavaRuntime, java
from headwater.local.kafka import KafkaServer
from headwater.local.mariadb import MariaDBServer
from headwater.local.postgres import PostgresServer
from headwater.local.service import ServerOrigin, Service

__all__ = [
    "AddressError",
    "DamagedDownloadError",
    "FetchError",
    "JavaRuntime",
    "KafkaServer",
    "MariaDBServer",
    "MissingRequirementError",
    "NotOursError",
    "PortTakenError",
    "PostgresServer",
    "ServerChoice",
    "ServerKind",
    "ServerOrigin",
    "Service",
    "Stack",
    "StartError",
    "cache_directory",
    "choose_server",
    "java",
    "kafka",
    "mariadb",
    "postgres",
    "prefetch",
    "service",
]
