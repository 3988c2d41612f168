"""Interface: what the chat page says itself, in the language of who reads it.

Templates mark their sentences with `translate`; what scripts and views say stands here. English is
the key under which `conversations/locale` keeps the others.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.utils.translation import get_language_info, gettext, gettext_noop

from agents.names import Role
from conversations.errors import (
    Busy,
    Forgotten,
    NobodyListens,
    NothingToRead,
    RefusedRetake,
    StillTakenIn,
    TooManyTurns,
    TurnInProgress,
    UnknownAssistant,
)

View = Callable[..., HttpResponse]

# What is told of each role while it works. Roles that do one thing for the reader share a sentence.
_UNDERSTANDING = gettext_noop("Understanding the question")
_SEARCHING = gettext_noop("Searching the documents")
STEPS: dict[str, str] = {
    Role.COMMAND: _UNDERSTANDING,
    Role.LANG: _UNDERSTANDING,
    Role.TRANSLATION: _UNDERSTANDING,
    Role.ESSENCE: _UNDERSTANDING,
    Role.MEMORY: gettext_noop("Remembering the conversation"),
    Role.GUARDRAILS: gettext_noop("Checking whether I may help"),
    Role.ROUTER: gettext_noop("Deciding how to answer"),
    Role.SEARCH: _SEARCHING,
    Role.EVALUATOR: gettext_noop("Checking what was found"),
    Role.AUGMENTATION: gettext_noop("Choosing the passages"),
    Role.RESPONSE: gettext_noop("Writing the answer"),
    Role.QUALITY: gettext_noop("Checking the answer"),
    Role.CLARIFICATION: gettext_noop("Asking back"),
    Role.FALLBACK: gettext_noop("Saying what I can do"),
    Role.BILLING: gettext_noop("Looking into your account"),
    Role.ORCHESTRATOR: gettext_noop("Planning the analysis"),
    Role.EXTRACTOR: gettext_noop("Finding passages"),
    Role.CLASSIFIER: gettext_noop("Sorting the documents"),
    Role.REQUIREMENT_EXTRACTOR: gettext_noop("Listing the requirements"),
    Role.COMPLIANCE: gettext_noop("Judging the requirements"),
    Role.RISK_VERIFIER: gettext_noop("Looking for risks"),
    Role.CITATION_AUDITOR: gettext_noop("Checking the citations"),
    Role.GAP_SYNTHESIZER: gettext_noop("Looking for gaps"),
}
# What the scripts of the page say.
SCRIPT: dict[str, str] = {
    "looking": gettext_noop("Looking for the answer…"),
    "writing": gettext_noop("Writing the answer…"),
    "again": gettext_noop("Writing the answer again…"),
    "delayed": gettext_noop(
        "This takes longer than usual. Your question is kept, and the answer comes by itself."
    ),
    "lost": gettext_noop("The connection was lost. It is taken up again by itself…"),
    "resend": gettext_noop("Sent again in {seconds} s."),
    "unsent": gettext_noop("That could not be sent."),
    "copied": gettext_noop("Copied"),
    "source": gettext_noop("Source {number}: {title}"),
    "failed": gettext_noop("tried again"),
    "answered": gettext_noop("The answer is there."),
}
# Of the statuses of citations, those that a reader must know of.
STATUSES: dict[str, str] = {
    "weak": gettext_noop("to be checked"),
    "unsupported": gettext_noop("not found"),
}
# Of requirements in an analysis.
VERDICTS: dict[str, str] = {
    "compliant": gettext_noop("met"),
    "gap": gettext_noop("nothing found that meets it"),
    "violation": gettext_noop("violated"),
    "": gettext_noop("not judged"),
}
NOT_HERE = gettext_noop(
    "There is no such conversation in this browser. It may have begun in another one, or it was "
    "forgotten."
)
# What a frame on another site says in place of the page.
GONE = gettext_noop("This chat has been switched off.")
ELSEWHERE = gettext_noop("This chat is not made for this page.")
NO_REDIS = gettext_noop("The assistant cannot take questions right now.")
REFUSALS: dict[type[Exception], str] = {
    NobodyListens: gettext_noop("The assistant is not at work right now. Your question is kept."),
    TurnInProgress: gettext_noop("The last message is still being answered."),
    TooManyTurns: gettext_noop("Too many questions are being answered at the moment."),
    Busy: gettext_noop("Too much is asked at the moment."),
    StillTakenIn: gettext_noop("The documents are still being taken in."),
    NothingToRead: gettext_noop("The documents of this assistant are not there yet."),
    Forgotten: NOT_HERE,
    UnknownAssistant: gettext_noop("There is no assistant of that name here."),
    RefusedRetake: gettext_noop("Our staff have answered since, so this cannot be taken back."),
}


def in_own_language(view: View) -> View:
    """Have a view answer in the language of the browser, or in the one that was chosen."""

    @wraps(view)
    def translated(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        with translation.override(translation.get_language_from_request(request)):
            response = view(request, *args, **kwargs)
            response.headers["Content-Language"] = translation.get_language() or "en"
            return response

    return translated


def languages() -> list[tuple[str, str]]:
    """Return the code of each language of the interface, and what its speakers call it."""
    return [(code, get_language_info(code)["name_local"]) for code, _ in settings.LANGUAGES]


def refusal(error: Exception, *, staff: bool) -> str:
    """Return why a message was not taken; staff also read what there is to do."""
    told = gettext(REFUSALS[type(error)]) if type(error) in REFUSALS else str(error)
    if isinstance(error, StillTakenIn) and error.progress:
        return f"{told} ({error.progress})"
    return f"{told} {error.remedy}" if staff and isinstance(error, NobodyListens) else told


def script_words() -> dict[str, str]:
    """Return what scripts say, and under `step-…` what each role is doing."""
    steps = {f"step-{role}": gettext(words) for role, words in STEPS.items()}
    return {name: gettext(words) for name, words in SCRIPT.items()} | steps
