"""What a Spark driver captures of each kind of statement, on every table format: one case, one hand-written truth.

Truth is written by hand or read from the format's own metadata, never from what headwater said. A new statement is a
case of its format's module; a new format gets a module, an `Extensions` in `kit/spark/driver.py` and a group of its
own.
"""
