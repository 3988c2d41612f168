"""Words: the terms and literals of texts, the languages spoken here, and Docent's sentences."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.utils.formats import date_format
from django.utils.translation import get_language_info, gettext, override
from snowballstemmer import stemmer

from agents.attributes import Persona, Reason
from agents.opening_hours import OpeningHours


def vocabulary(file: Path) -> dict[str, frozenset[str]]:
    """The words a file lists per language, one line "language: words" each."""
    lines = file.read_text("utf-8").splitlines()
    pairs = (line.split(":", maxsplit=1) for line in lines if line and not line.startswith("#"))
    return {language: frozenset(words.split()) for language, words in pairs}


# Terms: what a text is about, in a form that is the same in a question and in a passage.

APOSTROPHE = "\u2019"
# A letter with the marks that Indian scripts write as characters of their own.
LETTER = r"(?:[^\W_]|[\u0900-\u0dff])"
WORD = re.compile(rf"{LETTER}+(?:['{APOSTROPHE}.-]{LETTER}+)*")
HAN = re.compile(r"[\u3400-\u9fff]+")
# English endings go, by Snowball's rules, and the beginning of a word stands for all its forms in
# every language. Of XQuAD (CC BY-SA 4.0, 1,190 questions to 240 paragraphs in each of twelve
# languages), ranked by the terms they share, the mean reciprocal rank is .837; .836 and .832 with
# five and seven letters, .808 with whole stems, .836 with Snowball's rules of each language. In
# Turkish and Greek, which nobody looked at, .850 and .795, and .766 and .743 with whole stems.
STEM_LENGTH = 6
FUNCTION_WORDS = vocabulary(Path(__file__).parent / "function_words.txt")
EVERY_FUNCTION_WORD = frozenset().union(*FUNCTION_WORDS.values())


def words(text: str) -> list[str]:
    """The words of `text` in lower case; each run of Chinese characters in pairs."""
    parts: list[str] = []
    for word in WORD.findall(text.casefold().replace(APOSTROPHE, "'")):
        if HAN.search(word):
            for run in HAN.findall(word):
                parts.extend(run[i : i + 2] for i in range(max(1, len(run) - 1)))
            parts.extend(WORD.findall(HAN.sub(" ", word)))
        else:
            parts.append(word)
    return parts


def content_words(text: str) -> list[str]:
    """The words of `text` that are not function words, in lower case and in order."""
    text_words = words(text)
    function_words = _function_words_in(text_words)
    return [word for word in text_words if word not in function_words]


def terms(text: str) -> list[str]:
    """The stems of the content words of `text`, each once, in order."""
    return list(dict.fromkeys(stem(word) for word in content_words(text)))


@lru_cache(maxsize=1 << 15)
def stem(word: str) -> str:
    """One form for the inflected forms of a word; rough, the same for question and passage."""
    # A new one each time, as it keeps the word it is at.
    return str(stemmer("english").stemWord(word))[:STEM_LENGTH]


def _function_words_in(text_words: list[str]) -> frozenset[str]:
    """The function words to leave out: English ones, unless another language speaks louder.

    "die" is no more than an article in German and everything in an English question.
    """
    english = sum(word in FUNCTION_WORDS["en"] for word in text_words)
    others = (sum(word in own for word in text_words) for own in FUNCTION_WORDS.values())
    return FUNCTION_WORDS["en"] if english >= max(others) else EVERY_FUNCTION_WORD


# Languages: their codes, their names, and the locales that Docent has sentences in.

# What is the same in every language. ASCII: in scripts without spaces an identifier would take the
# sentence around it along.
LITERAL = re.compile(
    r"```.*?```|`[^`\n]+`"  # code
    r"|\w+://[!-~]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # addresses
    r"|(?<![\w/])(?:~|\.{1,2})?(?:/[\w.-]+)+|\b[A-Z]:\\[!-~]+|(?<!\S)--?[a-z][\w-]+"  # paths, flags
    r"|\b[\w-]{2,}(?:\.[\w-]{2,})+\b"  # file and host names
    r"|\b\w*_\w+|\b\w*[a-z][A-Z]\w*|\b[A-Za-z]\w*\d\w*",  # identifiers
    re.DOTALL | re.ASCII,
)
TRAILING = ".,;:!?)>\"'"


def literals(text: str) -> list[str]:
    """The code, addresses, paths and identifiers of `text`, in order."""
    return [literal.rstrip(TRAILING) for literal in LITERAL.findall(text)]


def digit_runs(text: str) -> Iterator[str]:
    """The runs of digits in `text`, in ASCII, whatever script they are written in."""
    for run in re.findall(r"\d+", text):
        yield "".join(str(unicodedata.decimal(digit)) for digit in run)


ENGLISH = "en"
# Docent's language code to the locale Django keeps its sentences under.
LOCALES = {
    "en": "en",
    "de": "de",
    "es": "es",
    "fr": "fr",
    "pl": "pl",
    "cs": "cs",
    "ru": "ru",
    "zh": "zh-hans",
}
LANGUAGE_NAMES = vocabulary(Path(__file__).parent / "language_names.txt")


def base_language(language: str) -> str:
    """The language without its region: "zh" for "zh-cn"."""
    return language.split("-", maxsplit=1)[0]


def locale_of(language: str) -> str:
    """The locale whose fixed sentences suit a speaker of `language`; English when none does."""
    return LOCALES.get(base_language(language), LOCALES[ENGLISH])


def english_name(language: str) -> str:
    """What a language is called in English: "German"; its code when it has no name here."""
    base = base_language(language)
    for code in (language, LOCALES.get(base, base)):
        try:
            return str(get_language_info(code)["name"])
        except KeyError:
            continue
    return language


def list_languages(languages: Iterable[str]) -> str:
    """Name the languages in English, the commonest first: "German, English"; empty for none."""
    commonest = Counter(map(base_language, filter(None, languages))).most_common()
    return ", ".join(english_name(language) for language, _ in commonest)


def language_named_in(text: str) -> str | None:
    """The code of the first language `text` names, by its code alone or in words."""
    text = text.strip().casefold()
    if base_language(text) in LANGUAGE_NAMES:
        return base_language(text)
    for language, names in LANGUAGE_NAMES.items():
        for name in names:
            # Chinese writes no spaces: a name may stand anywhere.
            edge = "" if HAN.match(name) else r"\b"
            if re.search(edge + re.escape(name), text):
                return language
    return None


# Phrases: every sentence that Docent says itself, whatever the documents say.


class Phrase(StrEnum):
    """One fixed sentence. Its English text is the key under which translations are kept."""

    FAREWELL = "Goodbye, and come back whenever you have a question."
    THANKED = "You're welcome. Ask me whenever you have another question."
    GIVEN_UP = "All right, let's leave it at that. Ask me whenever you have another question."
    AUTOMATED = "I'm an automated assistant, not a person."
    SORRY = "I'm sorry that I wasn't of more help."
    NOTED = "I'll keep that in mind for my answers."
    CONTACT = (
        "I can't put you through to a person, but you can reach the support team here: {contact}."
    )
    NO_CONTACT = (
        "I can't put you through to a person. Please contact the support team directly; I don't "
        "have their contact details."
    )
    FAILED = (
        "Something went wrong on our side while I was working on your question. Please try again. "
        "If it happens again, give the support team this error number: {error_id}."
    )
    EXPIRED = (
        "This question took longer than it may, so I stopped. Please try again or ask something "
        "narrower. If it happens again, give the support team this error number: {error_id}."
    )
    TOOLS_FAILED = (
        "I could not look everything up, so this may be incomplete. If it happens again, give the "
        "support team this error number: {error_id}."
    )
    EFFECT_UNKNOWN = (
        "It is not known whether what you asked for was done. Please ask me about it before you "
        "ask for it again. If that does not help, give the support team this error number: "
        "{error_id}."
    )
    CANCELLED = "I stopped working on this question, as you asked."

    HELP_ANY = "I answer questions from documents and show where each answer is written."
    HELP_DOMAIN = (
        "I answer questions about {domain} from documents and show where each answer is written."
    )
    SCOPE = "What I'm here for: {scope}."
    NO_DOCUMENTS = (
        "There are no documents here yet, so I can't answer questions. Whoever runs this "
        "assistant can add some."
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
    CLOSEST = "This may not answer your question, but nothing in the documents comes closer:"
    CLOSEST_WITHOUT = (
        "This is the closest place in the documents, but it may leave something open ({missing}):"
    )
    CLOSEST_ASKING = (
        "This is the closest place in the documents; to say more I need to know more ({missing}):"
    )
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
    CORRECTED = "Searched for: {words}."
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

    YOUR_PLAN = "Your plan: {name}, {price_a_month} {currency} a month, since {started}."
    YOUR_INVOICE = "Invoice {invoice} of {issued}: {amount} {currency}."
    NO_ACCOUNT = "I find no account of yours here, so I can't look into plans, invoices or refunds."
    CASE_OPENED = (
        "Refund case {case} is open: {amount} {currency} of invoice {invoice}. It is decided by "
        "{decided_by}."
    )
    SUGGEST_INVOICE = "{invoice}, {issued}: {amount} {currency}"
    SUGGEST_REFUND = "I want a refund"
    SUGGEST_PLAN = "Which plan do I have?"
    SUGGEST_INVOICES = "Show my invoices"
    SUGGEST_CASE = "What became of my refund?"
    SUGGEST_POLICY = "What are the rules of refunds?"
    SUGGEST_OPEN_CASE = "Yes, open the case"
    SUGGEST_NO_CASE = "No, leave it"
    REASON_OVERCHARGE = "I was charged too much"
    REASON_SERVICE_OUTAGE = "The service did not work"
    REASON_WITHIN_COOLING_OFF = "I withdraw within the cooling-off period"
    REASON_OTHER = "Another reason"
    REFUND_NEEDED = "For a refund I need to know:"
    NEEDED_INVOICE = "Which invoice is it about?"
    NEEDED_AMOUNT = "How much is to be paid back, in {currency}?"
    NEEDED_REASON = "What is the reason? One of these: {reasons}."
    REFUNDABLE = "These invoices can be refunded:"
    REFUND_SHOWN = (
        "This is what I understood: {amount} {currency} of invoice {invoice} back, because: "
        "{reason}. Shall I open a refund case?"
    )
    REFUND_DROPPED = "All right, I open no refund case."
    NOT_UNDERSTOOD = "I did not understand that."
    CASE_APPROVED = (
        "Refund case {case} was approved: {amount} {currency} of invoice {invoice} are paid back "
        "within {days} days, the way they were paid."
    )
    CASE_REJECTED = (
        "Refund case {case} was rejected: {amount} {currency} of invoice {invoice} are not paid "
        "back."
    )
    STAFF_SAID = "Our staff wrote about case {case}: {comment}"
    NO_SUCH_CASE = "I find no refund case {case} of yours."
    NO_CASES = "You have no refund cases."
    NO_INVOICES = "You have no invoices."
    NO_PLAN = "You have no plan."
    POLICY_LIMIT = "An invoice is refunded once, up to its amount and at most {amount} {currency}."
    POLICY_REASONS = "Reasons for a refund: {reasons}."
    POLICY_COOLING_OFF = "You can withdraw for {days} days after a subscription begins."
    POLICY_TERMS = (
        "A case is decided within {days} business days. If it is approved, the money is back "
        "{paid_back} days later, the way it was paid."
    )
    POLICY_NOT_REFUNDABLE = "Not refundable: {items}."
    AMOUNT_REFUSED = (
        "An amount must be above 0 and at most {amount} {currency}, with at most two decimals."
    )
    AMOUNT_BEYOND = (
        "Invoice {invoice} is of {amount} {currency}: no more than that can be paid back."
    )
    ONE_AMOUNT = "One case is about one amount."
    OTHER_CURRENCY = "Invoices here are in {currency}: nothing is paid back in {named}."
    NO_SUCH_INVOICE = "I find no invoice {invoice} of yours."
    ONE_INVOICE = "One case is about one invoice."
    ONE_REASON = "One case has one reason."
    INVOICE_HAS_CASE = "Invoice {invoice} has refund case {case} already: it is refunded once."
    NOTHING_TO_REFUND = "None of your invoices can be refunded now."
    COOLING_OFF_ENDED = "The cooling-off period ended on {day}; another reason may still apply."
    CASE_NOT_OPENED = "I could not open the case."

    HANDED_OVER = "I've told our staff, and a person will answer you here."
    PASSED_ON = "Our staff have your message. When they have answered, write again to read it here."
    UNRESOLVED = "I can't narrow this down any further."
    PERSON_OFFERED = "Say so if you would rather talk to a person: our staff can answer you here."
    OUT_OF_HOURS = "Nobody is there right now. Our staff are here again: {when} ({zone})."

    NOT_ANALYSED = "No language model could analyse this, so nothing is judged. The documents say:"
    ANALYSIS_INCOMPLETE = "Parts of this analysis could not be done, or not wholly: {parts}."
    OBLIGATIONS = (
        "No language model could judge this. These are the duties that I found, each "
        "with the nearest place in another document:"
    )
    NEAR_SURELY = "surely about it"
    NEAR_LIKELY = "likely about it"
    NEAR_PERHAPS = "perhaps about it"
    NOTHING_NEAR = "nothing near found"
    PART_PASSAGES = "finding passages"
    PART_KINDS = "kinds of documents"
    PART_REQUIREMENTS = "list of requirements"
    PART_VERDICTS = "verdicts on the requirements"
    PART_RISKS = "risks"
    PART_CITATIONS = "check of citations"
    PART_GAPS = "gaps"
    FOUND_LISTED = "I could not put what was found into words. These are the places it rests on:"
    VERDICT_COMPLIANT = "met"
    VERDICT_GAP = "nothing found that meets it"
    VERDICT_VIOLATION = "said or done otherwise"
    DOES_IT_COMPLY = "Does “{title}” comply with “{requirement}”?"

    FALLBACK = "I can't help with that myself."
    ROUTE_DOCUMENTATION = "Ask a question about the documents"
    ROUTE_BILLING = "My plan, an invoice, a refund or the status of a case"
    ROUTE_ANALYSIS = "Compare or judge documents: requirements, risks, gaps"
    SOMETHING_ELSE = "Something else: say in a few words what it is about"
    SUGGEST_HELP = "Type /help to see what I can do"
    STILL_TAKEN_IN = (
        "Documents are still being taken in: {finished} of {items}. Ask again in a moment."
    )

    def in_language(self, language: str, **values: object) -> str:
        """The sentence in `language` (English when there is no translation), values filled in."""
        with override(locale_of(language)):
            return gettext(self.value).format(**values)


def reason_text(reason: Reason, language: str) -> str:
    """What a reason for clarification is called towards the user."""
    return Phrase[reason.name].in_language(language)


def capabilities(language: str, assistant: Persona) -> str:
    """What the assistant can help with, naming its domain and scope when it has them."""
    domain, scope = assistant.domain_name, assistant.domain_scope.strip().rstrip(".")
    told = [
        Phrase.HELP_DOMAIN.in_language(language, domain=domain)
        if domain
        else Phrase.HELP_ANY.in_language(language)
    ]
    if scope:
        told.append(Phrase.SCOPE.in_language(language, scope=scope))
    return " ".join(told)


def welcome(language: str, assistant: Persona) -> str:
    """Answer a greeting, in the assistant's own words where it has some."""
    return assistant.greeting or Phrase.WELCOME.in_language(language)


def contact(language: str, assistant: Persona) -> str:
    """Say how people are reached; that nothing is known of it where nothing is.

    With `HANDOVER` they are reached by asking for them.
    """
    if settings.HANDOVER:
        return Phrase.PERSON_OFFERED.in_language(language)
    if assistant.contact:
        return Phrase.CONTACT.in_language(language, contact=assistant.contact)
    return Phrase.NO_CONTACT.in_language(language)


def handed_over(language: str, current_time: str, assistant: Persona) -> str:
    """Say that a person will answer, and from when on; `current_time` is ISO 8601."""
    told = [Phrase.HANDED_OVER.in_language(language)]
    hours = OpeningHours.parse(assistant.opening_hours)
    opens = hours.next_opening(datetime.fromisoformat(current_time))
    if opens:
        with override(locale_of(language)):
            when = f"{date_format(opens, 'l')}, {date_format(opens, 'DATETIME_FORMAT')}"
        told.append(Phrase.OUT_OF_HOURS.in_language(language, when=when, zone=opens.tzinfo))
    return " ".join(told)


def language_asked(language: str, assistant: Persona) -> str:
    """Ask which language is wanted, with those there are."""
    examples = ", ".join(assistant.languages or LOCALES)
    return Phrase.LANGUAGE_WHICH.in_language(language, examples=examples)


def language_noted(language: str, name: str, assistant: Persona) -> str:
    """Confirm, in that language where there are sentences in it, the language to answer in.

    An assistant that answers in others names those.
    """
    if not assistant.answers_in(language):
        return language_asked(assistant.language_for(language), assistant)
    if base_language(language) in LOCALES:
        return Phrase.LANGUAGE_SET.in_language(language)
    return Phrase.LANGUAGE_OTHER.in_language(language, name=name)
