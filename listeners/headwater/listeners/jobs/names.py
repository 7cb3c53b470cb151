"""What jobs are called."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final

from headwater.events.names import JobName

NAME: Final = "spark.headwater.job.name"
NAMESPACE: Final = "spark.headwater.job.namespace"
UNNAMED: Final = "unnamed"
_MAX_NAME_LENGTH: Final = 512
_BREAKS: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_HIDDEN: Final = "*********(redacted)"
"""What Spark itself puts in the place of values that look like secrets to it."""

# What shells, servers and notebooks are called by default: everybody's are called so.
_GENERIC: Final = re.compile(
    r"""
      pyspark | py-?spark-?shell | spark[ -]?shell | spark-?r-?shell | spark-?sql | sparksql::.* | databricks[ ]shell
    | thrift[ ]jdbc/odbc[ ]server | spark[ ]?connect([ ]server)? | zeppelin([-_ ].*)? | (apache[ ])?toree([ ].*)?
    | livy(-session-\d+)? | sparkmagic | remotesparkmagics | jupyter(lab|hub)?([-_ ]notebook)?
    | ipykernel_launcher(\.py)? | ipython | notebook | untitled\d*(\.ipynb)? | unnamed | __main__(\.py)?
    | org\.apache\.spark\..*
    """,
    re.VERBOSE | re.IGNORECASE,
)


def clean_name(name: str) -> str:
    """A name on one line, of a length that can be kept under a key: what is cut off is replaced by a digest."""
    sound = _BREAKS.sub(" ", name.encode("utf-8", "replace").decode("utf-8")).strip()
    if len(sound) <= _MAX_NAME_LENGTH:
        return sound
    digest = hashlib.sha256(sound.encode()).hexdigest()[:16]
    return f"{sound[: _MAX_NAME_LENGTH - len(digest) - 1]}~{digest}"


def is_generic(application: str) -> bool:
    """Whether anybody's application could be called so."""
    return _GENERIC.fullmatch(application) is not None


def application_name(name: str, user: str | None) -> str:
    """The name of an application that nobody named the job of; a generic one belongs to its user."""
    sound = clean_name(name) or UNNAMED
    return clean_name(f"{user}.{sound}") if user and is_generic(sound) else sound


def session_name(session: Mapping[str, str], key: str) -> str | None:
    """What a session says under one of the keys above, if it says something that can be read."""
    said = clean_name(session.get(key, ""))
    return said if said and said != _HIDDEN else None


def job_name(namespace: str | None, name: str) -> JobName:
    """The job of that name, of the default namespace where there is none."""
    return JobName(namespace=clean_name(namespace) or None if namespace else None, name=clean_name(name) or UNNAMED)
