"""Nearness: which kind of question that is declined a question is nearest to."""

from django.conf import settings

from agents.attributes import Reason
from agents.intake.exemplars import votes, worth
from knowledge.embedding import encode
from knowledge.sentences import typed

# Each kind of question that is declined is also the name of a file of exemplars.
UNSAFE = (Reason.HARMFUL_CONTENT, Reason.SYSTEM_ABUSE, Reason.INAPPROPRIATE)
BENIGN = "benign"
# A sentence in a longer text is judged by itself as well, but with more reserve.
RESERVE = 0.14
MOST_SENTENCES = 12
# So near to the description of the deployment's scope, a question is its business.
IN_SCOPE = 0.35


def _pieces(question: str, said: str) -> list[str]:
    """The question, and by itself each sentence of it and of what was literally said."""
    whole = f"{question}\n{said}" if said not in question else question
    sentences = typed(whole)
    return [question, *sentences[:MOST_SENTENCES]] if len(sentences) > 1 else [question]


def _kinds(question: str) -> tuple[Reason, ...]:
    """The kinds of question this deployment declines, given what it says about its scope."""
    if not settings.DOMAIN_SCOPE:
        return (*UNSAFE, Reason.OFF_TOPIC)
    scope, asked = encode([f"{settings.DOMAIN_NAME} {settings.DOMAIN_SCOPE}", question])
    return UNSAFE if scope @ asked >= IN_SCOPE else (*UNSAFE, Reason.OFF_TOPIC, Reason.OUT_OF_SCOPE)


def worst(question: str, said: str) -> tuple[Reason, float]:
    """Return the kind a question is nearest to, and by how much nearer than to anything benign.

    `said` are the words of the user it was made from. Raises EmbeddingUnavailable.
    """
    kinds = _kinds(question)
    pieces = _pieces(question, said)
    ranked = [
        (kind, worth(vote[kind.value] - vote[BENIGN]) - (RESERVE if place else 0))
        for place, vote in enumerate(votes(pieces, [*(kind.value for kind in kinds), BENIGN]))
        # What is off topic shows in the whole question only.
        for kind in (UNSAFE if place else kinds)
    ]
    return max(ranked, key=lambda pair: pair[1])
