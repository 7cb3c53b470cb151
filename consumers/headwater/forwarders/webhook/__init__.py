"""Webhooks: events as CloudEvents 1.0 over HTTP, one in a request or many, signed if a secret is configured.

`cloud_events` says what an event becomes, without any input or output. The rest sends it. `http_client`, `credentials`
and `signatures` serve alerts too. Only this package imports the CloudEvents SDK.
"""

from headwater.forwarders.webhook.forwarder import WebhookForwarder

__all__ = ["WebhookForwarder"]
