"""What tests share whatever they test: waiting, databases of a test's own, topics, and drivers as processes.

It imports nothing else of tests. A helper that another test module needs moves here, or into the kit of its folder.
"""
