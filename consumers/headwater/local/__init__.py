"""Real servers on one machine, without Docker and without root: for tests, and for `headwater up`.

    from headwater.local import kafka, postgres

    with kafka() as broker, postgres() as database:
        print(broker.address, database.address)

`decide` tells where each comes from. The servers are child processes of ours on 127.0.0.1: stopped by `stop` or at
exit, and by a watchdog when we are killed. What has to be fetched is fetched once, into the user's cache directory.
"""

from __future__ import annotations

from headwater.local.cache import cache_directory
from headwater.local.decide import Decision, Kind, decide, kafka, mariadb, postgres, prefetch, service
from headwater.local.errors import (
    AddressError,
    DamagedDownloadError,
    FetchError,
    MissingRequirementError,
    NotOursError,
    PortTakenError,
    StartError,
)
from headwater.local.java import Java, java
from headwater.local.kafka import KafkaServer
from headwater.local.mariadb import MariaDBServer
from headwater.local.postgres import PostgresServer
from headwater.local.service import Origin, Service
from headwater.local.stack import Stack

__all__ = [
    "AddressError",
    "DamagedDownloadError",
    "Decision",
    "FetchError",
    "Java",
    "KafkaServer",
    "Kind",
    "MariaDBServer",
    "MissingRequirementError",
    "NotOursError",
    "Origin",
    "PortTakenError",
    "PostgresServer",
    "Service",
    "Stack",
    "StartError",
    "cache_directory",
    "decide",
    "java",
    "kafka",
    "mariadb",
    "postgres",
    "prefetch",
    "service",
]
