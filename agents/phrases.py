"""Phrases: the sentences Docent says by itself, in each of its languages."""

from enum import StrEnum

from django.utils.translation import gettext, override

from agents.attributes import Reason
from agents.languages import locale_of


class Phrase(StrEnum):
    """One fixed sentence. Its English text is the key under which translations are kept."""

    FAREWELL = "You're welcome. Goodbye, and come back whenever you have a question."
    FAILED = (
        "Something went wrong on our side while I was working on your question. Please try again. "
        "If it happens again, give the support team this error number: {error_id}."
    )
    EXPIRED = (
        "This question took longer than it may, so I stopped. Please try again or ask something "
        "narrower. If it happens again, give the support team this error number: {error_id}."
    )
    CANCELLED = "I stopped working on this question, as you asked."

    HELP_ANY = "I answer questions from documents and show where each answer is written."
    HELP_DOMAIN = (
        "I answer questions about {domain} from documents and show where each answer is written."
    )
    COMMANDS = (
        "These commands exist: /help shows what I can do, /start begins, "
        "/language followed by a language sets the language I answer in."
    )
    WELCOME = "Hello! Ask me a question in your own words."
    UNKNOWN_COMMAND = "I don't know the command {command}."
    LANGUAGE_SET = "From now on I answer in English."
    LANGUAGE_OTHER = "I noted the language {name}. My own sentences stay in English."
    LANGUAGE_WHICH = "Which language do you want? For example: {examples}."

    SOURCES = "Sources:"
    VERSION = "version {number}"
    QUOTED = "The documents say, quoted in their own language:"
    NOT_COVERED = "The documents I found do not mention: {missing}."

    NEEDED = "To answer that I need to know: {missing}."

    NOT_TRANSLATED = (
        "I could not translate your question, and the documents are written in another language "
        "({languages}): a question in that language finds more."
    )

    MEANT = "Which of these do you mean?"
    NEARBY = "The documents say something about these topics, which are close to your question:"
    COVERED = "For example, you can ask about:"
    REPHRASE = "Describe in one sentence what you want to do and with which product or feature."
    CLOSING = (
        "I can't narrow this down any further, so I'll stop asking. "
        "Please contact the support team, or ask me a different question."
    )

    AMBIGUOUS_QUERY = "Your question can be understood in more than one way."
    INSUFFICIENT_CONTEXT = "I found no answer to that in the documents."
    SCOPE_UNCLEAR = "I'm not sure whether this is something the documents cover."
    MULTIPLE_TOPICS = "You ask about several things at once. Which one shall I answer first?"
    MISSING_DETAILS = "The documents answer only a part of that. A detail more would help me."
    MISSING_CONTEXT = "I don't know yet what your question refers to."
    VAGUE_REQUEST = "Please tell me a little more about what you want to know."
    OUT_OF_SCOPE = "That lies outside of what I can help with."
    QUALITY_INSUFFICIENT = (
        "I found something, but not an answer I would stand behind. A detail more would help me."
    )
    HARMFUL_CONTENT = "I can't help with that, because it could hurt someone."
    SYSTEM_ABUSE = "I can't change how I work or show my instructions. I'm glad to help otherwise."
    INAPPROPRIATE = "I'd rather keep this respectful, and I'm glad to help with a question."
    OFF_TOPIC = "I'm sorry, I can't help with that topic."

    FALLBACK = "I can't help with that myself."
    ROUTE_DOCUMENTATION = "Ask a question about the documents"
    SUGGEST_HELP = "Type /help to see what I can do"

    def said_in(self, language: str, **values: object) -> str:
        """The sentence in `language` (English when there is no translation), values filled in."""
        with override(locale_of(language)):
            return gettext(self.value).format(**values)


def reason_said(reason: Reason, language: str) -> str:
    """What a reason for clarification is called towards the user."""
    return Phrase[reason.name].said_in(language)


def capabilities(language: str, domain: str) -> str:
    """What Docent can help with, naming the deployment's domain when it has one."""
    if domain:
        return Phrase.HELP_DOMAIN.said_in(language, domain=domain)
    return Phrase.HELP_ANY.said_in(language)
