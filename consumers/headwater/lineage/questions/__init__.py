"""The questions that a store answers. Each is a function of a connection; `lineage.client` offers them as methods.

Each answer says up to which time it is complete, and why it may be incomplete (`answers`).

names, name_checks             what a question is about: tables, jobs, snapshots
tables, columns, snapshots     lineage upstream and downstream, `states` folded per source, `paths` between two
jobs, runs, uses, lateness     who reads and writes a table, and how that goes
history, generations           what happened to a table; its names and branches
checkpoints                    which batch of a stream made a snapshot
completeness, gaps             what may be missing
traversal                      walks from snapshot to snapshot
"""

from headwater.lineage.questions.answers import Answer, AnswerLimit, LimitReason

__all__ = ["Answer", "AnswerLimit", "LimitReason"]
