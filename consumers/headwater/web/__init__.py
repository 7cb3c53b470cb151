"""The page over a store: read-only, rendered on the server, each page also as JSON.

settings    where it is served, and who may read it
access      tokens, headers of a proxy, and OpenID Connect
questions   asks the store within limits of time and number
views       one file a page: what it asks, and what the command line says for it
app         addresses, headers, errors

It may import lineage and versions. Only the command line imports it.
"""

from headwater.web.app import create_app
from headwater.web.settings import WebSettings

__all__ = ["WebSettings", "create_app"]
