"""Two jobs that read one table, of which one is behind."""

from __future__ import annotations

from headwater.events.jobs import OverwriteScope
from tests.kit.lineage.stories import StoryProducer

ALL = OverwriteScope.ALL


def two_jobs() -> StoryProducer:
    """Job-A makes B from A, Job-B makes C from A: A@20 is in B@11 and in C@15. Then Job-A alone reads A@21."""
    story = StoryProducer()
    story.commit("a@20", parent=19)
    story.commit("b@11", reads=["a@20"], replaced=ALL, job="Job-A")
    story.commit("c@15", reads=["a@20"], replaced=ALL, job="Job-B")
    story.commit("a@21")
    story.commit("b@12", reads=["a@21"], replaced=ALL, job="Job-A")
    return story
