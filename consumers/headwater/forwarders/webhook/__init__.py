"""Webhooks: events as CloudEvents 1.0 over HTTP, one in a request or many, signed if a secret is configured.

`messages` says what an event becomes, without any input or output. The rest sends it. `http_client` and
`credentials` serve alerts too. Only this package imports the CloudEvents SDK.
"""

from headwater.forwarders.webhook.forwarder import WebhookForwarder

__all__ = ["WebhookForwarder"]
