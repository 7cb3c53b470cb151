"""Where committers put files before they are visible."""

from __future__ import annotations

import re
from typing import Final

_STAGING: Final = re.compile(
    r"""(?:^|/)(?:
        _temporary                          # Hadoop's committers, and the manifest committer
        | __magic(?:_job-[^/]+)?            # S3A's magic committer, before and since Hadoop 3.4
        | \.spark-staging-[^/]+             # Spark, where partitions are overwritten dynamically
        | \.hive-staging(?:_hive_[^/]+)?    # Hive, and Spark writing to its tables
        | \.hoodie/\.temp                   # Hudi
        | \.sparkStaging                    # Spark on YARN
    )(?:/|$)""",
    re.VERBOSE,
)
"""Whole segments of paths. Delta, Iceberg and Paimon write where the files will stay."""


def without_staging(path: str) -> str:
    """The directory that a write is for, where a path inside its staging directory was seen."""
    staging = _STAGING.search(path)
    if staging is None:
        return path
    return path[: staging.start()] or path[: staging.start() + path.startswith("/")]
