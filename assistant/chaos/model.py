"""Model: the model server of a chaos run, which fails at times and counts what it is paid for."""

import json
import random
import re
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field, replace

from agents.bench.modelserver import Asked, Said
from agents.bench.replies import sensible

# What marks the turn a call belongs to, in every question of a run.
MARK = re.compile(r"case (\d{6})\b")
FAILURES = (
    Said(status=500),
    Said(status=503),
    Said(status=429, headers={"Retry-After": "1"}),
    Said(reset=True),
    Said("half of a rep", cut_after=1),
    Said("", finish="content_filter"),
    Said("no JSON at all"),
)


@dataclass
class Failing:
    """Sensible replies after some time, some of them spoilt; the same seed, the same chances."""

    chance: random.Random
    share: float = 0.04  # of calls that fail
    seconds: tuple[float, float] = (0.05, 0.4)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, asked: Asked) -> Said:
        """Return what is said to a call."""
        with self._lock:
            seconds = self.chance.uniform(*self.seconds)
            if self.chance.random() < self.share:
                return replace(self.chance.choice(FAILURES), seconds=seconds)
        usual = sensible(asked)
        said = usual if isinstance(usual, str) else json.dumps(usual, ensure_ascii=False)
        return Said(said, seconds=seconds)


def by_turn(ledger: list[Asked]) -> dict[str, list[Asked]]:
    """Return the calls of each turn, by its mark, in the order they arrived."""
    found: dict[str, list[Asked]] = defaultdict(list)
    for asked in ledger:
        if mark := MARK.search(json.dumps(asked.body)):
            found[mark[1]].append(asked)
    return found


def asked_again(
    calls: list[Asked], stored: list[tuple[list[dict[str, str]], float]]
) -> list[Asked]:
    """Return those of a turn's calls that were made although their reply was in the journal.

    `stored` are the messages of each reply in the journal, and the Unix time it was stored at.
    """
    offset = time.time() - time.monotonic()
    return [
        asked
        for asked in calls
        if any(
            messages == asked.body.get("messages") and at < asked.began + offset
            for messages, at in stored
        )
    ]
