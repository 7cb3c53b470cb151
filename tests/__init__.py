"""All tests of headwater, in three tiers (tests/kit/plugins/tiers.py).

`make check` plays the fast ones, `make test` all but those that are `long`, `make test-all` slices of the long ones.

A new test goes where its kind is: one function of ours without a server to `unit/<room>`; a law that holds for all
inputs to `property`; a Spark statement and what is captured of it to `matrix`; several parts of ours, or one and a real
server, to `integration`; something that breaks to `faults`; the interface that plug-ins implement to `contract`.
"""
