"""What is killed, cut off, full, slow or wrong, and what is left: nothing accepted is lost, no job is harmed.

A victim is a process of its own that a test kills at a known point; rounds of random faults take their seeds from
`tests/kit/seeds.py`. A fault of the network goes through `kit/faults/tcp_proxy`, a full disk is a real one
(`kit/faults/small_disk`). A new test names the promise that breaks without it.
"""
