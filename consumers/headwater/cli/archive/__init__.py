"""`headwater archive`: every event as it came, kept as long as wanted.

process     the process that archives
inspection  what is there, and whether it is whole
upkeep      compaction and retention
"""
