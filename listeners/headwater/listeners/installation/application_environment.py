"""Where a driver stands: how it is configured, on which host, with which file system and metastore by default."""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from headwater.events.identity import Environment
from headwater.events.identity.namespaces import PREFIX as NAMESPACES
from headwater.jvm.loader import java_class

_LOG = logging.getLogger(__name__)
_HADOOP_KEYS: Final = (
    "fs.defaultFS",
    "dfs.nameservices",
    "hive.metastore.uris",
    "hive.metastore.warehouse.dir",
    "javax.jdo.option.ConnectionURL",
    "hive.metastore.glue.catalogid",
    "aws.region",
)
"""Keys that Hadoop's own files (core-site.xml, hive-site.xml …) may say."""
_DERBY_HOME: Final = "derby.system.home"
"""A property of the JVM: where a metastore in the driver is, if its own address doesn't say it."""
_HIDDEN: Final = "*********(redacted)"
"""What Spark's own text of a configuration has in the place of a secret."""


def read_configuration(context: Any) -> dict[str, str]:
    """All entries of a SparkContext's configuration. pyspark asks the JVM four times for each, which takes a tenth of
    what headwater adds to a start; Spark's text of it has a line for each. What a line can't say for sure is asked."""
    conf = context._conf
    lines = [line.partition("=") for line in conf.toDebugString().split("\n")]
    found: dict[str, Any] = {key: value for key, _, value in lines}
    if len(lines) == len(found) == len(conf._jconf.getAll()):  # else there are values of several lines
        unsure = [key for key, value in found.items() if value == _HIDDEN or "=" in value]
        found.update((key, conf.get(key)) for key in unsure)
        if None not in found.values():  # else there is a key with an equals sign
            return found
    return dict(conf.getAll())


def read_environment(context: Any, configuration: Mapping[str, str], names: Mapping[str, str]) -> Environment:
    """Of a SparkContext. What its configuration doesn't say, Hadoop's is asked. `names` are the logical names of hosts
    that are right: one that isn't must not take the others, and all that is captured, along."""
    own = {key: value for key, value in configuration.items() if not key.startswith(NAMESPACES)}
    known = {**_read_hadoop(context), **own, **{f"{NAMESPACES}{name}": hosts for name, hosts in names.items()}}
    return Environment.from_conf(known, host=socket.gethostname(), working_directory=str(Path.cwd()))


def _read_hadoop(context: Any) -> dict[str, str]:
    try:
        hadoop = context._jsc.hadoopConfiguration()
        said = {key: hadoop.get(key) for key in _HADOOP_KEYS}
        said[_DERBY_HOME] = java_class(context._gateway, "java.lang.System").getProperty(_DERBY_HOME)
    except Exception as e:  # noqa: BLE001 - py4j raises what it likes
        _LOG.debug("Hadoop's configuration can't be read: %s", e)
        return {}
    return {key: value for key, value in said.items() if value}
