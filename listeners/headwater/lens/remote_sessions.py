"""Refuses sessions of Spark Connect where a lens was asked for: their driver is elsewhere, so none would be in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, NoReturn

from headwater.errors import ConfigurationError


def refuse_remote_sessions(who: str, environment: Mapping[str, str] = os.environ) -> None:
    """Have a session of Spark Connect end the program; `who` asked for the lens, in its message."""
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - the program's own
    except ImportError as e:
        raise ConfigurationError(
            f"{who}: pyspark can't be imported before the script runs ({e}): put it on PYTHONPATH, "
            "with $SPARK_HOME/python say, since a lens has to be in every session that the script makes"
        ) from e
    message = f"{who}: a session of Spark Connect can't have a lens, and would read and write the real tables"
    if environment.get("SPARK_REMOTE") or environment.get("SPARK_CONNECT_MODE_ENABLED"):
        raise SystemExit(f"{message}: unset SPARK_REMOTE and SPARK_CONNECT_MODE_ENABLED")

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise SystemExit(message)

    builder: Any = SparkSession.Builder
    original = builder.getOrCreate

    def get_or_create(self: Any) -> Any:
        options = self._options
        if options.get("spark.remote") or options.get("spark.api.mode", "classic") == "connect":
            refuse()
        return original(self)

    builder.getOrCreate = get_or_create
    if hasattr(builder, "create"):
        builder.create = refuse  # of Spark Connect alone
    if find_spec("grpc") is not None:  # without it there is no Connect
        with suppress(ImportError):
            from pyspark.sql.connect.session import SparkSession as RemoteSession  # noqa: PLC0415

            remote: Any = RemoteSession
            remote.__init__ = refuse
