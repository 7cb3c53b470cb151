"""Spark sessions with lakes of each format, and what a lake of every format does."""
