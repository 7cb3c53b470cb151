"""Figures beside the bare library in the same run. `make bench BENCH=name` runs one; it fails below its aims.

A new figure goes to the program of its area; a program states its aims, and ends with 1 if one is missed.
"""
