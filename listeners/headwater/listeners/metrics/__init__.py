"""What a driver's bus knows of itself, for Prometheus: served, written to a file, or collected by a registry.

    from prometheus_client import REGISTRY
    from headwater.listeners.metrics.collector import BusCollector

    REGISTRY.register(BusCollector(headwater.listeners.install(spark).report))

All but `exposing` needs the library prometheus-client, of the extra `metrics`. Every metric is in docs/metrics.md.
"""
