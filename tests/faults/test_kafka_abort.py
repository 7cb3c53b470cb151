"""librdkafka aborts the whole process, by an assertion, where an answer about the cluster or a topic comes while its
client is being destroyed (rdkafka_admin.c, seen with 2.16). So these questions aren't asked that way."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from headwater.local import KafkaServer
from tests.kit.kafka.victims import ROOT
from tests.kit.waiting import attempts

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.long]

SECONDS = 40


def test_no_question_that_is_given_up_aborts_the_process() -> None:
    """Of three processes that asked by DescribeCluster two were aborted within half a minute on a busy machine; it
    takes luck, and once in a while none is."""
    chance = random.Random(1)
    with KafkaServer() as broker:
        assert broker.pid is not None
        command = [sys.executable, "-m", "tests.kit.kafka.asker", broker.address, str(SECONDS)]
        askers = [subprocess.Popen(command, cwd=ROOT) for _ in range(3)]
        try:
            for _ in attempts("the end of those who ask", 3 * SECONDS):
                if all(asker.poll() is not None for asker in askers):
                    break
                os.kill(broker.pid, signal.SIGSTOP)
                time.sleep(chance.choice([0.05, 0.2, 0.6, 1.7, 2.5]))
                os.kill(broker.pid, signal.SIGCONT)
                time.sleep(chance.choice([0.02, 0.1, 0.3, 0.5]))
        finally:
            for asker in askers:
                asker.kill()
                asker.wait()
    assert [asker.returncode for asker in askers] == [0, 0, 0]
