"""`headwater forward`: events to other systems, by forwarders. Only the command line imports it.

arguments      which forwarders there are, their bus and their state
running        runs them
status         what they do, and which are installed
targets        checks a target, and shows what would be sent of the newest events about a table
"""
