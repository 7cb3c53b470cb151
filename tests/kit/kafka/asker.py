"""Asks a cluster which one it is, again and again, and gives up after moments: `python -m tests.kit.kafka.asker`."""

from __future__ import annotations

import random
import sys
import threading
import time
from contextlib import suppress

from headwater.config import read_config
from headwater.errors import HeadwaterError
from headwater.publishers.kafka.cluster import KafkaCluster
from headwater.publishers.kafka.config import KafkaConfig
from headwater.publishers.kafka.errors import ErrorTracker
from tests.kit.kafka.conf import IMPATIENT


def ask(address: str, seconds: float) -> None:
    """Each time with a client of its own, which goes while its question may be pending."""
    producer = {f"producer.{key}": value for key, value in IMPATIENT.items()}
    config = read_config(KafkaConfig, {"bootstrap.servers": address, **producer}, shown="")
    chance = random.Random(1)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        cluster = KafkaCluster(config, ErrorTracker(lambda *_: None, config.without_secrets))
        cancelling = threading.Timer(chance.uniform(0, 0.05), cluster.cancel)
        cancelling.start()
        with suppress(HeadwaterError):
            cluster.topic(time.monotonic() + 5)
        cancelling.join()
        del cluster, cancelling


if __name__ == "__main__":
    ask(sys.argv[1], float(sys.argv[2]))
