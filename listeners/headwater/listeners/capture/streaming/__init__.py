"""Streaming queries: what their micro-batches read and made, and how their runs begin and end."""
