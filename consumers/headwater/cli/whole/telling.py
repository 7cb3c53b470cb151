"""What is printed when it runs: how Spark is told, and how the store is asked."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from headwater.cli.output import Output
from headwater.cli.whole.home import Home, State

DATABASES = ("postgres", "mariadb")


def spark_conf(broker: str, topic: str) -> dict[str, str]:
    """What a driver needs; the topic where it isn't the usual one."""
    from headwater.publishers.kafka.config import DEFAULT_TOPIC  # noqa: PLC0415

    conf = {"spark.headwater.enabled": "true", "spark.headwater.listeners": "kafka"}
    conf["spark.headwater.kafka.bootstrap.servers"] = broker
    if topic != DEFAULT_TOPIC:
        conf["spark.headwater.kafka.topic"] = topic
    return conf


def as_file(conf: Mapping[str, str]) -> str:
    width = max(map(len, conf))
    return "".join(f"{key:<{width}}  {value}\n" for key, value in conf.items())


def store_of(state: State) -> str:
    return next((part.address for name, part in state.parts.items() if name in DATABASES), "")


def broker_of(state: State) -> str:
    return state.parts["kafka"].address if "kafka" in state.parts else ""


def addresses(home: Home, state: State) -> dict[str, object]:
    """For programs: the same as for people."""
    writer = state.parts.get("writer")
    return {
        "HOME": str(home.path),
        "KAFKA": broker_of(state),
        "HEADWATER_STORE": store_of(state),
        "WRITER": writer.address if writer else "",
        "SPARK_CONF": str(home.conf),
    }


def tell_how(output: Output, home: Home, state: State) -> None:
    """What to paste."""
    output.record("It runs", addresses(home, state))
    output.note("\nSpark: the Python of the driver has to have headwater; in spark-defaults.conf, or as --conf each,")
    output.note("")
    output.note(home.conf.read_text() if home.conf.exists() else "")
    output.note(f"Whether that is right:  headwater doctor --properties-file {shlex.quote(str(home.conf))}\n")
    output.note("Ask it:\n")
    output.note(f"export HEADWATER_STORE={shlex.quote(store_of(state))}")
    output.note("headwater runs")
    output.note("headwater history CATALOG.DATABASE.TABLE")
    output.note("headwater lineage upstream CATALOG.DATABASE.TABLE --commit")
