"""What is printed when it runs: how to configure Spark, and how to ask the store."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from headwater.cli.dev.home import DevState, Home
from headwater.cli.output import CommandOutput

DATABASES = ("postgres", "mariadb")


def spark_conf(broker: str, topic: str) -> dict[str, str]:
    """Return what a driver needs; the topic where it isn't the usual one."""
    from headwater.publishers.kafka.config import DEFAULT_TOPIC  # noqa: PLC0415

    conf = {"spark.headwater.enabled": "true", "spark.headwater.listeners": "kafka"}
    conf["spark.headwater.kafka.bootstrap.servers"] = broker
    if topic != DEFAULT_TOPIC:
        conf["spark.headwater.kafka.topic"] = topic
    return conf


def as_file(conf: Mapping[str, str]) -> str:
    width = max(map(len, conf))
    return "".join(f"{key:<{width}}  {value}\n" for key, value in conf.items())


def store_of(state: DevState) -> str:
    return next((part.address for name, part in state.parts.items() if name in DATABASES), "")


def broker_of(state: DevState) -> str:
    return state.parts["kafka"].address if "kafka" in state.parts else ""


def addresses(home: Home, state: DevState) -> dict[str, object]:
    """Return where everything is, by the names of variables."""
    writer = state.parts.get("writer")
    return {
        "HOME": str(home.path),
        "KAFKA": broker_of(state),
        "HEADWATER_STORE": store_of(state),
        "WRITER": writer.address if writer else "",
        "SPARK_CONF": str(home.conf),
    }


def instruct(output: CommandOutput, home: Home, state: DevState) -> None:
    """Give the addresses, and print what to paste."""
    output.record("addresses", addresses(home, state), "It runs")
    output.note(
        "\nInstall headwater into the Python of the Spark driver, and put into spark-defaults.conf, or give by --conf:"
    )
    output.note("")
    output.note(home.conf.read_text() if home.conf.exists() else "")
    output.note(f"Check it:  headwater doctor --properties-file {shlex.quote(str(home.conf))}\n")
    output.note("Ask it:\n")
    output.note(f"export HEADWATER_STORE={shlex.quote(store_of(state))}")
    output.note("headwater job runs")
    output.note("headwater table history CATALOG.DATABASE.TABLE")
    output.note("headwater lineage upstream CATALOG.DATABASE.TABLE --commit")
