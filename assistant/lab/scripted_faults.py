"""Faults: the ways in which servers and models fail, as data, and what is asked while they do.

A fault is bound to one turn: its provider has a name and an address of its own, so that the server
can tell what to do, and nothing that is learned of a provider leads from one fault to the next.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from assistant.lab.model_server import Call, Response
from assistant.lab.scripted_replies import ELEMENT, TOOL, is_free, passages, sensible

PAGES = {
    "winter.md": """# Winter

## Draining the pump

Drain the pump before the first frost. Close the main valve first. Then open the drain screw at the
bottom of the pump. Let the water run out for 10 minutes. Leave the screw open until spring.
""",
    "watering.md": """# Watering times

## Setting a time

Hold the clock button for 3 seconds, choose a zone and turn the wheel to the hour at which watering
is to begin. Each zone has up to 4 times.

## Rain

When the rain sensor is wet, the next time is left out. The display then shows a cloud.

## Display

The display goes dark after 2 minutes. Any button wakes it. Its brightness is set with the wheel.
""",
    "network.md": """# Network

An internet connection is needed only for the app. The controller keeps its schedule by itself and
waters the garden also when the router is off.
""",
    "sharing.md": """# Sharing a garden

Open the app, choose Garden > People and type an email address. Who is invited may change the times
but cannot remove the controller.
""",
    "warranty.md": """# Warranty

The warranty lasts three years from the day of purchase. Keep the receipt, because a repair is free
only with it.
""",
}


@dataclass(frozen=True)
class Question:
    """What is asked, the page that answers it, and words that an answer cannot do without."""

    text: str
    page: str
    words: str
    answer: str  # of a model in good health; `{m}` stands for the marker of the right passage


ORDINARY = Question(
    "How do I drain the pump before winter?",
    "winter.md",
    "drain screw",
    "Close the main valve first {m}. Then open the drain screw at the bottom of the pump {m}. "
    "Let the water run out for 10 minutes {m}.",
)
# Nothing that search finds stands out, so nobody but models can be sure that it answers.
UNSURE = replace(ORDINARY, text="How do I prepare for cold weather?")
YES_OR_NO = Question(
    "Does the controller need an internet connection?",
    "network.md",
    "only for the app",
    "An internet connection is needed only for the app {m}.",
)
# What nobody asked.
OTHER = Question(
    "How do I share the garden with my family?",
    "sharing.md",
    "Garden > People",
    "Open the app, choose Garden > People and type an email address {m}.",
)
# What a faulty model says; none of it may reach a user.
GIBBERISH = "asdf qwer zxcv uiop hjkl"
THOUGHT = "The user wants me to look at the passages, so let me think."
PREFACE = "Sure! Here it is:"
APOLOGY = "I'm sorry, but I can't help with that."
LOOP = "the valve is closed by the valve that "
OFF_TOPIC = "The warranty lasts three years from the day of purchase."
BESIDE = "When the rain sensor is wet, the next time is left out {m}."
FALSE_YES = "Yes, the controller needs an internet connection for every watering {m}."
WRONG_NUMBER = "25 minutes"
FRAGMENT = "Then open the drain screw at the bott"
FOREIGN = "Schließen Sie zuerst das Hauptventil {m}. Öffnen Sie dann die Ablassschraube {m}."
HTML = "<!doctype html><html><body><h1>502 Bad Gateway</h1></body></html>"
SHAPED = (
    "translation", "essence", "guardrails", "router", "evaluator", "quality", "clarification",
)  # fmt: skip
GUARDRAILS, RESPONSE, QUALITY = ("guardrails",), ("response",), ("quality",)
# Longer than a turn may take.
ENDLESS = 3600.0


@dataclass(frozen=True)
class Asked:
    """One call of a turn, and what a model in good health would say to it."""

    call: Call
    text: str
    before: int  # how often this prompt was sent in this turn before

    @property
    def shaped(self) -> bool:
        """Whether a JSON object is asked for, and not an answer."""
        return self.text.startswith("{")

    def marker(self, words: str, *, with_them: bool = True) -> str:
        """Return the marker of the first passage that has these words, or has them not."""
        found = (
            name
            for name, text in passages(self.call).items()
            if (words in " ".join(text.split())) is with_them
        )
        return f"[{next(found, 'C1')}]"

    def values(self, **changes: Any) -> Response:
        """Return the usual values with some of them changed."""
        return Response(json.dumps(json.loads(self.text) | changes, ensure_ascii=False))


Does = Callable[[Asked], Response]


@dataclass(frozen=True)
class Fault:
    """One way to fail: what the server does, at which prompts (all), and what is asked."""

    name: str
    does: Does
    at: tuple[str, ...] = ()
    question: Question = ORDINARY
    oversized: bool = False  # a reply longer than any answer, which has to end as a quotation
    alone: bool = False  # takes so much of the machine that no other turn is timed beside it
    address: str = ""  # of the provider, where it is not the server of the measurement

    @property
    def provider(self) -> str:
        """Name of the provider that has this fault, as a part of an address."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    def reply(self, call: Call, before: int) -> Response:
        """Return what the server does with a call of this turn."""
        usual = sensible(call)
        asked = Asked(call, json.dumps(usual, ensure_ascii=False), before)
        if not isinstance(usual, dict):
            question = OTHER if OTHER.text in call.user else self.question
            marker = asked.marker(question.words)
            asked = replace(asked, text=question.answer.replace("{m}", marker))
        if self.at and call.prompt not in self.at:
            return Response(asked.text)
        return self.does(asked)


def always(response: Response) -> Does:
    """Do the same whatever is asked."""
    return lambda asked: response


def instead(**changes: Any) -> Does:
    """Say what is usual in another way: slower, in pieces, cut."""
    return lambda asked: replace(Response(asked.text), **changes)


def written(form: str) -> Does:
    """Write text around what is usual: `{}` stands for that."""
    return lambda asked: Response(form.replace("{}", asked.text))


def answered(text: str, words: str = ORDINARY.words) -> Does:
    """Answer so; `{m}` stands for the marker of the passage that has the words."""
    return lambda asked: Response(text.replace("{m}", asked.marker(words)))


def changed(old: str, new: str) -> Does:
    """Give the right answer with something in it changed."""
    return answered(ORDINARY.answer.replace(old, new))


def judged(**values: Any) -> Does:
    """Fill in the shape that is asked for, some of it like this."""
    return lambda asked: asked.values(**values)


def refused(status: int, message: str, code: str, **headers: str) -> Does:
    """Refuse as OpenAI does."""
    body = json.dumps({"error": {"message": message, "type": code, "code": code}})
    return always(Response(status=status, body=body, headers=headers))


def nonsense(asked: Asked) -> Response:
    """Keep to the shape and fill it with gibberish."""
    if not asked.shaped:
        return Response(f"{GIBBERISH} {asked.marker(ORDINARY.words)}")
    shapes = asked.call.body["response_format"]["json_schema"]["schema"]["properties"]
    free = {name: GIBBERISH for name, shape in shapes.items() if is_free(shape)}
    return asked.values(**free)


def prompt_echo(asked: Asked) -> Response:
    """Say the whole prompt again."""
    return Response(f"{asked.call.system}\n\n{asked.call.user}")


def passages_echo(asked: Asked) -> Response:
    """Say again what stands in the last message, elements and all."""
    return Response(asked.call.user)


def names_echo(asked: Asked) -> Response:
    """Say the names of the elements instead of what stands in them."""
    names = [f"{kind}-{digest}" for kind, digest, *_ in ELEMENT.findall(asked.call.user)]
    if asked.shaped:
        return asked.values(canonical_question=" ".join(names[-1:]))
    return Response(f"{' '.join(names)} {asked.text}")


def schema_echo(asked: Asked) -> Response:
    """Say the schema instead of something that has it."""
    return Response(json.dumps(asked.call.body.get("response_format", {}).get("json_schema", {})))


def cut(asked: Asked) -> Response:
    """Stop in the middle of a word, because the tokens are used up."""
    end = asked.text.find(FRAGMENT) + len(FRAGMENT) if FRAGMENT in asked.text else 60
    return Response(asked.text[:end], finish="length")


def looping(asked: Asked) -> Response:
    """Say a phrase again and again, up to the limit of tokens."""
    most = int(asked.call.body.get("max_tokens", 1500)) * 4
    text = LOOP * (most // len(LOOP))
    return Response(f"{text} {asked.marker(ORDINARY.words)}", finish="length")


def huge(size: int) -> Does:
    """Write an answer of this size, every sentence of it from the words of the pages."""

    def does(asked: Asked) -> Response:
        marker = asked.marker(ORDINARY.words)
        words = sorted({word for page in PAGES.values() for word in re.findall("[a-z]{4,}", page)})
        lines, length = [asked.text], 0
        for first, second, third in product(words, repeat=3):
            lines.append(f"The {first} is {second} by the {third} {marker}.")
            length += len(lines[-1]) + 1
            if length >= size:
                break
        text = "\n".join(lines)
        return Response(text, pieces=[text[place : place + 60] for place in range(0, size, 60)])

    return does


def junk(asked: Asked) -> Response:
    """Write 5 MB that are nothing."""
    return Response(pieces=["x#y%" * 1024] * 1280)


def once(response: Response) -> Does:
    """Fail the first time each prompt is sent, and never again."""
    return lambda asked: Response(asked.text) if asked.before else response


def redirected(asked: Asked) -> Response:
    """Say that it has moved to where it is."""
    return Response(status=307, body="", headers={"Location": asked.call.path})


def midway(asked: Asked) -> Response:
    """Begin, and never go on."""
    half = len(asked.text) // 2
    pieces = [asked.text[:half], asked.text[half:]]
    return Response(pieces=pieces, first_after=0.0, seconds=ENDLESS)


def drip(asked: Asked) -> Response:
    """Say a character a second."""
    return Response(pieces=list(asked.text), seconds=float(len(asked.text)))


def in_parts(asked: Asked) -> Response:
    """Say it as a list of parts with a type."""
    return Response(pieces=[""], extra={"content": [{"type": "text", "text": asked.text}]})


def mistaken_marker(asked: Asked) -> Response:
    """Cite another passage than the one that says it."""
    other = asked.marker(ORDINARY.words, with_them=False)
    return Response(asked.text.replace(asked.marker(ORDINARY.words), other))


def reviewed(second: Does) -> Does:
    """Send the first answer back, write the second one so, and approve that."""

    def does(asked: Asked) -> Response:
        if asked.call.prompt == "response":
            return second(asked) if asked.before else Response(asked.text)
        decision, score = ("approve", 0.9) if asked.before else ("regenerate", 0.1)
        return asked.values(decision=decision, score=score)

    return does


def repeated(asked: Asked) -> Response:
    """Say the first statement of the answer over and over."""
    return Response(" ".join([f"{asked.text.partition('.')[0]}."] * 8))


def reworded(asked: Asked) -> Response:
    """Answer in other words, and find that wrong every time."""
    if asked.shaped:
        return asked.values(decision="regenerate", score=0.1, unsupported=[1, 2, 3])
    text = (
        "First shut the main valve {m}. Open the drain screw below the pump {m}. "
        "Give the water 10 minutes to run out {m}."
    )
    return Response(text.replace("{m}", asked.marker(ORDINARY.words)))


TOO_LONG = refused(
    400, "This model's maximum context length is 2048 tokens.", "context_length_exceeded"
)
DECLARED = (
    Fault("none", written("{}")),
    # The server refuses, fails or goes away.
    Fault("429, Retry-After 2", refused(429, "slow down", "rate", **{"Retry-After": "2"})),
    Fault("429, Retry-After 90", refused(429, "slow down", "rate", **{"Retry-After": "90"})),
    Fault("401", refused(401, "Incorrect API key provided.", "invalid_api_key")),
    Fault("404", refused(404, "The model does not exist.", "model_not_found")),
    Fault("quota", refused(429, "You exceeded your current quota.", "insufficient_quota")),
    Fault("500", always(Response(status=500))),
    Fault("503 once", once(Response(status=503))),
    Fault("nobody listens", written("{}"), address="http://127.0.0.1:9/v1"),
    Fault("connection reset", always(Response(reset=True))),
    Fault("answer cut off", instead(cut_after=3), RESPONSE),
    Fault("200 with an error", always(Response(body='{"error": {"message": "out of memory"}}'))),
    Fault("HTML", always(Response(body=HTML))),
    Fault("redirect to itself", redirected),
    Fault("context too long", TOO_LONG),
    Fault("context too long, guardrails", TOO_LONG, GUARDRAILS, UNSURE),
    Fault("context too long, response", TOO_LONG, RESPONSE),
    # It takes its time.
    Fault("hang", always(Response(hang=True))),
    Fault("hang, guardrails", always(Response(hang=True)), GUARDRAILS, UNSURE),
    Fault("hang, response", always(Response(hang=True)), RESPONSE),
    Fault("hang midway", midway),
    Fault("a character a second", drip),
    Fault("20 s a call", instead(seconds=20.0, first_after=15.0)),
    Fault("40 s a call, guardrails", instead(seconds=40.0, first_after=35.0), GUARDRAILS, UNSURE),
    Fault("25 s a call, translation", instead(seconds=25.0, first_after=20.0), ("translation",)),
    # What comes is no reply.
    Fault("cut at its limit", cut),
    Fault(
        "cut at its limit, guardrails", always(Response("{", finish="length")), GUARDRAILS, UNSURE
    ),
    Fault("refusal as text", always(Response(APOLOGY))),
    Fault("refusal as text, response", always(Response(APOLOGY)), RESPONSE),
    Fault("refusal field", always(Response(refusal=APOLOGY))),
    Fault("content filter", always(Response(finish="content_filter"))),
    Fault(
        "content filter, guardrails", always(Response(finish="content_filter")), GUARDRAILS, UNSURE
    ),
    Fault("empty", always(Response(""))),
    Fault("empty, guardrails", always(Response("")), GUARDRAILS, UNSURE),
    Fault("tool call", always(Response(finish="tool_calls", tool_calls=[TOOL]))),
    Fault("wrong shape", always(Response('{"answer": {"value": 1}}'))),
    Fault("wrong shape, guardrails", always(Response('{"safe": "yes"}')), GUARDRAILS, UNSURE),
    Fault("schema echo", schema_echo, SHAPED),
    Fault("no usage", instead(usage=False)),
    Fault("parts", in_parts),
    # Something stands around the reply, or is broken in it.
    Fault("fence", written("```\n{}\n```")),
    Fault("JSON in a fence", written("```json\n{}\n```"), SHAPED),
    Fault("preface", written(PREFACE + "\n\n{}")),
    Fault("thought", written(f"<think>{THOUGHT}</think>\n\n{{}}")),
    Fault("stray end of a thought", written(f"{THOUGHT}\n</think>\n\n{{}}")),
    Fault("broken characters", lambda asked: Response(asked.text.replace(" the ", " the \ufffd "))),
    Fault("NUL", lambda asked: Response(asked.text.replace(" the ", " the\0 "))),
    Fault("end in mid-word", written(f"{{}} {FRAGMENT}"), RESPONSE),
    Fault("end in mid-word with a marker", answered(f"{FRAGMENT} {{m}}"), RESPONSE),
    # It is far too long.
    Fault("loop", looping, oversized=True),
    Fault("loop, response", looping, RESPONSE, oversized=True),
    Fault("1 MB answer", huge(1_000_000), RESPONSE, oversized=True, alone=True),
    Fault("5 MB of junk", junk, oversized=True, alone=True),
    # It is a reply, and none to the question.
    Fault("prompt echo", prompt_echo),
    Fault("prompt echo, response", prompt_echo, RESPONSE),
    Fault("echo of the passages", passages_echo, RESPONSE),
    Fault("element names", names_echo, ("essence", "response")),
    Fault("gibberish with a marker", nonsense, RESPONSE),
    Fault("gibberish", nonsense),
    Fault("off-topic quotation", answered(f"{OFF_TOPIC} {{m}}", OFF_TOPIC), RESPONSE),
    Fault("question as answer", answered(f"{ORDINARY.text} {{m}}"), RESPONSE),
    Fault("another question, essence", judged(canonical_question=OTHER.text), ("essence",)),
    Fault("another question, translation", judged(text_eng=OTHER.text), ("translation",)),
    # It says what is not so.
    Fault("no markers", changed(" {m}", ""), RESPONSE),
    Fault("wrong markers", mistaken_marker, RESPONSE),
    Fault("unknown marker", changed("{m}", "[C99]"), RESPONSE),
    Fault("altered number", changed("10 minutes", WRONG_NUMBER), RESPONSE),
    Fault("false yes", answered(FALSE_YES, YES_OR_NO.words), RESPONSE, YES_OR_NO),
    Fault("another language", answered(FOREIGN), RESPONSE),
    Fault("INSUFFICIENT", always(Response("INSUFFICIENT: how the pump is drained")), RESPONSE),
    # It judges wrongly.
    Fault("system_abuse .98", judged(category="system_abuse", confidence=0.98), GUARDRAILS),
    Fault("harmful_content .98", judged(category="harmful_content", confidence=0.98), GUARDRAILS),
    Fault(
        "system_abuse .98; unsure",
        judged(category="system_abuse", confidence=0.98),
        GUARDRAILS,
        UNSURE,
    ),
    Fault("other question; unsure", judged(canonical_question=OTHER.text), ("essence",), UNSURE),
    Fault("repeats itself after a review", reviewed(repeated), ("quality", "response")),
    Fault("strays after a review", reviewed(answered(BESIDE, "cloud")), ("quality", "response")),
    Fault("other words, all unsupported", reworded, ("quality", "response")),
    Fault("never content, quality", judged(decision="regenerate", score=0.1), QUALITY),
    Fault("clarify, quality", judged(decision="clarify", score=0.1, missing="it"), QUALITY),
    Fault("all unsupported, quality", judged(score=0.1, unsupported=[1, 2]), QUALITY),
)


def with_unsure_search(faults: Iterable[Fault]) -> Iterator[Fault]:
    """Yield the faults, those of all roles once more with a question that search is unsure of."""
    for fault in faults:
        yield fault
        if not fault.at and not fault.alone:
            yield replace(fault, name=f"{fault.name}; unsure", question=UNSURE)


FAULTS = (*with_unsure_search(DECLARED),)
BY_NAME = {fault.name: fault for fault in FAULTS}
