"""How headwater's names and ids are written in OpenLineage: the same for the same event, whenever it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Final, TypeVar
from uuid import UUID

from openlineage.client.event_v2 import Job
from openlineage.client.generated.base import BaseFacet, JobFacet
from openlineage.client.uuid import generate_static_uuid

from headwater.events.barriers import millis_of
from headwater.events.envelope import EventId
from headwater.events.names import DEFAULT_JOB_NAMESPACE, JobName
from headwater.events.scalars import EPOCH

K = TypeVar("K")
T = TypeVar("T")
F = TypeVar("F", bound=BaseFacet)

PRODUCER_URI: Final = "urn:headwater:forwarders:openlineage"
"""Who made the messages: `producer` of each event and facet."""
_PRODUCER_FIELD: Final = "_producer"


def present(values: Mapping[K, T | None]) -> dict[K, T]:
    """Return the values that there are."""
    return {key: value for key, value in values.items() if value is not None}


def stamped(facets: Mapping[str, F | None]) -> dict[str, F]:
    """Return the facets that there are, each with its producer.

    It is set here because type checkers don't agree on what the client's argument for it is called.
    """
    there = present(facets)
    for facet in there.values():
        setattr(facet, _PRODUCER_FIELD, PRODUCER_URI)
    return there


def event_time(time: datetime) -> str:
    """Return a time with six digits and `Z`."""
    return time.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def job_namespace(job: JobName) -> str:
    """Return the job's namespace, which OpenLineage wants spelled out."""
    return job.namespace or DEFAULT_JOB_NAMESPACE


def job_of(job: JobName, facets: dict[str, JobFacet | None]) -> Job:
    """Return the job with its facets."""
    return Job(namespace=job_namespace(job), name=job.name, facets=stamped(facets))


def uuid_of(text: str | None) -> str | None:
    """Return the text as OpenLineage wants run ids, None if it is no UUID."""
    try:
        return None if text is None else str(UUID(text))
    except ValueError:
        return None


def commit_run(job: JobName, incarnation: UUID, barrier: int) -> str:
    """Return the id of a batch commit's own run."""
    instant = datetime.fromtimestamp(max(millis_of(barrier), 0) / 1000, timezone.utc)
    return _run_id(instant, "commit", job_namespace(job), job.name, str(incarnation), str(barrier))


def failure_run(time: datetime, event: EventId) -> str:
    """Return the id of the run of its own that a failed statement is."""
    return _run_id(max(time, EPOCH), "failure", str(event))


def _run_id(instant: datetime, *parts: str) -> str:
    """A UUID that sorts by time; its other bits are a hash of the parts."""
    return str(generate_static_uuid(instant, "\0".join(parts).encode("utf-8", "surrogatepass")))
