"""OpenLineage: events as RunEvents, JobEvents and DatasetEvents of spec 2, sent over HTTP, to Kafka or into a file.

`mapping.openlineage_events` says what an event becomes, without any input or output. The rest sends it. Only this
package imports the OpenLineage client.
"""

from headwater.forwarders.openlineage.forwarder import OpenLineageForwarder

__all__ = ["OpenLineageForwarder"]
