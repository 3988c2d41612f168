"""Speed: how quickly a model reads and writes, and which profile that is enough for."""

from dataclasses import dataclass, replace
from uuid import uuid4

from django.conf import settings

from agents.llm import pace
from agents.llm.journal import Subject
from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure
from agents.llm.requests import Choice
from agents.llm.trial import CHARACTERS_A_TOKEN, lines
from agents.names import PROFILES, Role
from prompts.prompt import Prompt
from prompts.texts import text

PROMPT = Prompt("trial_speed", "mark", "lines")
TOKENS = 300  # of the reply
# Who asks at an ordinary first question, one after the other.
IN_TURN = (Role.TRANSLATION, Role.ESSENCE, Role.GUARDRAILS, Role.RESPONSE, Role.QUALITY)
WITH_PASSAGES = frozenset({Role.RESPONSE, Role.QUALITY})
# Of the turn's time an ordinary question may take this share: the rest is for another search,
# for an answer that is written again, and for who asks at the same time.
ORDINARY_SHARE = 0.5


@dataclass(frozen=True)
class Speed:
    """How quickly a model reads and writes, in characters and in tokens a second."""

    reading: float
    writing: float
    tokens_read: float
    tokens_written: float

    def seconds(self, role: Role) -> float:
        """Return how long an ordinary call of the role takes."""
        prompt = text(role.value)
        passages = settings.MAX_CONTEXT_LENGTH if role in WITH_PASSAGES else 0
        read = len(prompt.system) + len(prompt.user) + passages
        written = pace.ANSWER_WRITTEN if role is Role.RESPONSE else pace.WRITTEN
        return read / self.reading + written / self.writing

    def turn_seconds(self, profile: str) -> float:
        """Return how long models take for an ordinary first question when these roles ask."""
        return sum(self.seconds(role) for role in IN_TURN if role.value in PROFILES[profile])


def measure(choice: Choice) -> Speed:
    """Have the first model read as much as for an answer, and write. Raises ModelFailure.

    The message begins with a word that no message had, so that the server has read none of it
    before. The call is journalled and paid like any other.
    """
    bounds = replace(choice, second="", max_tokens=TOKENS, timeout=settings.TURN_DEADLINE_SECONDS)
    mark = uuid4().hex
    llm = Model(bounds, Subject(f"trial/{mark}", "trial"))
    read = settings.MAX_CONTEXT_LENGTH + pace.ANSWER_READ
    reply = llm.write(PROMPT, mark=mark, lines=lines(read))
    begin = reply.seconds if reply.first_token_seconds is None else reply.first_token_seconds
    rest, written = max(reply.seconds - begin, 0.001), len(reply.text)
    begin = max(begin, 0.001)
    tokens = reply.usage.input_tokens or read / CHARACTERS_A_TOKEN
    tokens_written = reply.usage.output_tokens or written / CHARACTERS_A_TOKEN
    return Speed(read / begin, written / rest, tokens / begin, tokens_written / rest)


def advice(choice: Choice) -> str:
    """Return in a sentence whether a model is quick enough, and the profile it is enough for."""
    try:
        return judgement(choice.model, measure(choice))
    except ModelFailure as failure:
        return f"How quick it is could not be measured: {failure}"


def judgement(model: str, speed: Speed) -> str:
    """Return in a sentence how quick a model is, and what that is enough for."""
    pair = f"reads {speed.tokens_read:,.0f} tokens a second and writes {speed.tokens_written:,.0f}"
    return f"{model} {pair}: {proposal(speed)}"


def fullest(speed: Speed) -> str:
    """Return the fullest profile that a model of this speed is quick enough for; "" for none."""
    most = ORDINARY_SHARE * settings.TURN_DEADLINE_SECONDS
    fitting = [name for name in reversed(PROFILES) if speed.turn_seconds(name) <= most]
    in_time = speed.seconds(Role.RESPONSE) <= settings.MODELS[Role.RESPONSE.value].timeout
    return fitting[0] if fitting and in_time else ""


def proposal(speed: Speed) -> str:
    """Return in words the fullest profile that a model is quick enough for, or what to do."""
    deadline, profile = settings.TURN_DEADLINE_SECONDS, fullest(speed)
    answer = speed.seconds(Role.RESPONSE)
    if profile:
        seconds = speed.turn_seconds(profile)
        return (
            f"with MODEL_PROFILE={profile} an ordinary question takes it about {seconds:.0f} s "
            f"of the {deadline} s of a turn."
        )
    enough = round(pace.MARGIN * answer)
    return (
        f"an answer alone takes it about {answer:.0f} s, too slow for a turn of {deadline} s; take "
        f"a quicker model, or set MODEL_PROFILE=answer, RESPONSE_TIMEOUT={enough} and "
        f"TURN_DEADLINE_SECONDS={max(deadline, 2 * enough)}."
    )
