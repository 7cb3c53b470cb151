"""Events to DataHub, with DataHub's own SDK: by its REST interface, by its Kafka topic, or as files that it loads.

options    where proposals go, and what things are called there
names      platform, name, instance and urn of datasets, containers, jobs and runs
fields     columns as schema fields
datasets, views, containers, jobs    from an event to proposals: pure functions
proposals  batches of proposals
delivery   how they go out: into files, or by rest or kafka
forwarder  the forwarder itself
"""

import os

# The SDK reports its use over the Internet, unless this is set before it is imported.
os.environ.setdefault("DATAHUB_TELEMETRY_ENABLED", "false")

from headwater.forwarders.datahub.forwarder import DataHubForwarder

__all__ = ["DataHubForwarder"]
