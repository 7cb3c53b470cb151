"""Commands that change lineage, each by an event: deletion, expiry, datasets that are one. And purging."""
