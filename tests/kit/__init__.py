"""What tests share: a module or a room for each subject, from waiting and topics to whole rounds of faults.

A test module imports of tests only what is here, and what is here imports nothing else of tests
(tests/unit/test_kit.py). What a second test module needs moves here.
"""
