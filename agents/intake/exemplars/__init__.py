"""Exemplars: sentences that stand for their kind; texts are compared with them by embedding."""

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from agents.attributes import Reason
from knowledge.embedding import encode
from knowledge.sentences import split_message

FOLDER = Path(__file__).parent
# How fast the weight of an exemplar falls with its distance: at a cosine of 0.9 it has a fifth of
# its vote, at 0.7 a hundredth. 12 and 16 did better than 8 and 20 on questions that are safe or
# look unsafe, and better than the nearest one, two or three neighbours.
SHARPNESS = 16.0


@cache
def lines(name: str) -> tuple[str, ...]:
    """The sentences of `<name>.txt`: one a line, without blank lines and comments."""
    text = (FOLDER / f"{name}.txt").read_text("utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip() and line[0] != "#")


@cache
def _vectors(name: str) -> NDArray[np.float32]:
    return encode(lines(name))


def votes(texts: Sequence[str], kinds: Sequence[str]) -> list[dict[str, float]]:
    """For each text, the votes of the exemplars of each kind.

    An exemplar gives exp(SHARPNESS * (cosine - 1)): 1 to its own words, next to nothing to
    what is far from it. So what no exemplar is near to gets next to no votes at all.
    """
    vectors = encode(texts)
    weights = {
        kind: np.exp(SHARPNESS * (vectors @ _vectors(kind).T - 1)).sum(axis=1) for kind in kinds
    }
    return [{kind: float(weights[kind][row]) for kind in kinds} for row in range(len(texts))]


def worth(vote: float) -> float:
    """The cosine at which a single exemplar would give `vote`; -1 when there is none."""
    return max(-1.0, 1 + math.log(vote) / SHARPNESS) if vote > 0 else -1.0


# Each kind of question that is declined is also the name of a file of exemplars.
UNSAFE = (Reason.HARMFUL_CONTENT, Reason.SYSTEM_ABUSE, Reason.INAPPROPRIATE)
BENIGN = "benign"
# A sentence in a longer text is judged by itself as well, but with more reserve.
RESERVE = 0.14
MOST_SENTENCES = 12
# So near to the description of the deployment's scope, a question is its business.
IN_SCOPE = 0.35


def _pieces(question: str, message: str) -> list[str]:
    """The question, and by itself each sentence of it and of what was literally said."""
    whole = f"{question}\n{message}" if message not in question else question
    sentences = split_message(whole)
    return [question, *sentences[:MOST_SENTENCES]] if len(sentences) > 1 else [question]


def _kinds(question: str) -> tuple[Reason, ...]:
    """The kinds of question this deployment declines, given what it says about its scope."""
    if not settings.DOMAIN_SCOPE:
        return (*UNSAFE, Reason.OFF_TOPIC)
    scope, question_vector = encode([f"{settings.DOMAIN_NAME} {settings.DOMAIN_SCOPE}", question])
    return (
        UNSAFE
        if scope @ question_vector >= IN_SCOPE
        else (*UNSAFE, Reason.OFF_TOPIC, Reason.OUT_OF_SCOPE)
    )


def worst(question: str, message: str) -> tuple[Reason, float]:
    """Return the kind a question is nearest to, and by how much nearer than to anything benign.

    `message` are the words of the user it was made from. Raises EmbeddingUnavailable.
    """
    kinds = _kinds(question)
    pieces = _pieces(question, message)
    ranked = [
        (kind, worth(vote[kind.value] - vote[BENIGN]) - (RESERVE if place else 0))
        for place, vote in enumerate(votes(pieces, [*(kind.value for kind in kinds), BENIGN]))
        # What is off topic shows in the whole question only.
        for kind in (UNSAFE if place else kinds)
    ]
    return max(ranked, key=lambda pair: pair[1])
