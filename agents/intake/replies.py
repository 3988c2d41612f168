"""Replies: what a message means while a question to the user is open, or when the user leaves."""

from agents.attributes import DECLINING, OpenQuestion
from agents.intake.exemplars import votes, worth
from agents.intake.references import completed, refers_back
from agents.intake.vagueness import telling
from agents.intake.wording import (
    FAREWELL,
    LEAD_IN,
    LEAVING,
    NONE_OF_THEM,
    NUMBER,
    ORDINALS,
    QUESTION,
)
from agents.terms import terms, words

SHORT = 10
LONGEST_FAREWELL = 120
CHOICE_WORDS = 5
# Votes for leaving in excess of those for a question, as the cosine of one exemplar.
SURELY_LEAVING = 0.7


def says_goodbye(text: str, *, asked: bool) -> bool:
    """Whether the message is nothing but a goodbye or, having been asked, giving up."""
    short = len(text) <= LONGEST_FAREWELL
    return short and bool(FAREWELL.match(text) or (asked and LEAVING.match(text)))


def leaves(text: str, *, asked: bool) -> bool:
    """Whether the user says goodbye, or, having been asked something, gives up the question."""
    if len(text) > LONGEST_FAREWELL:
        return False
    if says_goodbye(text, asked=asked):
        return True
    if len(words(text)) > SHORT or QUESTION.match(text) or not text.isascii() or "?" in text:
        return bool(LEAVING.match(text))
    (vote,) = votes([text], ["leaving", "benign"])
    return worth(vote["leaving"] - vote["benign"]) >= SURELY_LEAVING


def chosen_option(text: str, options: list[str]) -> str | None:
    """The option the reply picks: by number, by place, or as the only one with its words."""
    plain = text.strip().casefold()
    if (number := NUMBER.match(plain)) and 1 <= int(number[1]) <= len(options):
        return options[int(number[1]) - 1]
    if options and len(words(plain)) <= CHOICE_WORDS:
        *places, last = ORDINALS
        for option, ordinal in (*zip(options, places, strict=False), (options[-1], last)):
            if ordinal.search(plain):
                return option
    return next((option for option in options if option.casefold() == plain), None)


def answers(text: str, open_question: OpenQuestion) -> str | None:
    """The open question completed by the reply; None when the message asks something else.

    What was declined is not asked again: of the reply only the option it picks counts.
    """
    option = chosen_option(text, open_question.options)
    if open_question.reason in DECLINING:
        return option
    if option:
        return completed(open_question.question, option)
    detail = LEAD_IN.sub("", text.strip(), count=1) or text.strip()
    asks = bool(QUESTION.match(detail)) or detail.endswith(("?", "\uff1f"))
    if NONE_OF_THEM.match(detail):
        return open_question.question
    if not asks:
        return completed(open_question.question, detail)
    known = set(terms(" ".join([open_question.question, *open_question.options])))
    about_it = not known.isdisjoint(terms(" ".join(telling(detail))))
    if refers_back(detail) or not telling(detail):
        return f"{open_question.question} {detail}"
    return detail if about_it else None
