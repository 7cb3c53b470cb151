"""What the store is asked: each answer says up to when it is complete, and whether it is partial and through what.

answers    what all of them have in common
"""

from headwater.lineage.questions.answers import Answer, Limit, Why

__all__ = ["Answer", "Limit", "Why"]
