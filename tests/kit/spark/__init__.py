"""Spark for tests: drivers whose statements are captured, sessions, packages, versions, clusters, Java programs."""
