"""Walking from snapshot to snapshot, a level at a time: each level is few statements for all that was found so far.

facts        writes and reads as the store has them, loaded by many keys at once
hiding       what was deleted as a set
identities   datasets that are one
makers       which commit made the snapshot that somebody read
ancestry     all commits of a state, or of a range of changes
descent      all snapshots that a commit is still a part of
upward       what snapshots were made from
downward     what was made from snapshots
limits       what an answer lacks
"""
