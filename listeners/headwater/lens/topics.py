"""Topics of Kafka under a lens: their names, `kafka://host:port/topic`, and their versions, which are offsets."""

from __future__ import annotations

import json
import re
import socket
from typing import Any, Final, cast

from headwater.events.identity.errors import IdentityError
from headwater.events.identity.hosts import endpoint, normal_host
from headwater.events.identity.namespaces import Namespaces
from headwater.lens.model import LensError

_SCHEME: Final = "kafka://"
_DEFAULT_PORT: Final = 9092
_EXAMPLE: Final = '{"0":42,"1":17}'


def is_topic(name: str) -> bool:
    """Return whether a name of a lens is that of a topic."""
    return name.lower().startswith(_SCHEME)


def normal_name(name: str, namespaces: Namespaces) -> str:
    """Return the name that lineage has for it: `kafka://host:port/topic`, or with the cluster's logical name."""
    cluster, slash, topic = name[len(_SCHEME) :].rpartition("/")
    if not slash or not cluster or not topic:
        raise LensError(f"{name!r} names no topic: write it as kafka://host:port/topic")
    try:
        place = endpoint(cluster)
        if place.port is None and namespaces.logical(place) != place.host:
            place = place._replace(port=_DEFAULT_PORT)
    except IdentityError as e:
        raise LensError(f"{name!r} names no topic, since {e}") from e
    return f"{_SCHEME}{place}/{topic}"


def normal_version(name: str, version: int | str) -> str:
    """Return a topic's version as JSON without blanks: by partition where it ends, or a range."""
    try:
        offsets: Any = json.loads(str(version))
    except ValueError:
        offsets = None
    if not isinstance(offsets, dict) or not offsets or not all(map(_is_range, offsets.items())):
        raise LensError(
            f"{name} can't be pinned to {version!r}: a topic's version is the offset behind the last record of each "
            f'partition, as in {_EXAMPLE}, or a range, as in {{"0":[40,42]}}'
        )
    return json.dumps(offsets, separators=(",", ":"))


def _is_range(item: tuple[str, Any]) -> bool:
    partition, offsets = item
    is_pair = isinstance(offsets, list) and len(offsets) == 2
    bounds = cast("list[int]", offsets if is_pair else [0, offsets])
    are_numbers = all(type(bound) is int and bound >= 0 for bound in bounds)
    return bool(re.fullmatch("[0-9]+", partition)) and are_numbers and bounds[0] <= bounds[1]


def driver_host() -> str:
    """Return the name by which lineage knows this machine."""
    return normal_host(socket.gethostname())
