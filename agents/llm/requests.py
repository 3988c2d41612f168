"""Requests: what a model is asked, by which settings, and what it replied."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

# {"role": "system" | "user" | "assistant" | "tool", "content": …}, as OpenAI's chat API has them.
Message = Mapping[str, Any]
# Why a reply was not read to its end: it says the same over and over, says what it was asked with,
# or is far longer than allowed.
LOOP, ECHO, EXCESS = "loop", "echo", "excess"
# Why a reply is not whole: at the limit of its tokens, or, though it says nothing of it, in a word.
LENGTH, FRAGMENT = "length", "fragment"


@dataclass(frozen=True)
class Request:
    """One question to one model. Two equal requests may share a reply."""

    model: str  # "model@provider"
    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float
    schema_name: str = ""
    schema: dict[str, Any] = field(default_factory=dict)  # JSON schema of the reply; {}: free text
    tools: tuple[Mapping[str, Any], ...] = ()  # that it may want called, as the chat API has them
    may_call: bool = True  # False: the tools are only there to understand what was said before

    def as_json(self) -> dict[str, Any]:
        """Return the request as JSON values, as it is kept."""
        values = asdict(self) | {"messages": list(self.messages), "tools": list(self.tools)}
        if not self.tools:
            # As it was before there were tools: calls from then are found by their digest.
            del values["tools"], values["may_call"]
        return values

    def digest(self) -> str:
        """Return the SHA-256 of the request, in hex."""
        text = json.dumps(self.as_json(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode(errors="replace")).hexdigest()


@dataclass(frozen=True)
class Usage:
    """Tokens as the provider counted them; None: it did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None  # of the input, read from the provider's own cache


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool that the model wants; one that no tools were offered is never made."""

    id: str
    name: str
    arguments: str  # JSON, as the model wrote it


@dataclass(frozen=True)
class Reply:
    """What a model answered."""

    text: str
    # stop, length, content_filter, refusal, tool_calls, or what else the provider says; loop, echo,
    # excess or fragment, which it does not say
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    model: str = ""  # "model@provider" that answered
    seconds: float = 0.0
    first_token_seconds: float | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    id: str = ""  # what the provider calls it; empty: it did not say

    @property
    def is_cut(self) -> bool:
        """Whether the end of the text is missing."""
        return self.finish_reason in {LENGTH, FRAGMENT}


@dataclass(frozen=True)
class Choice:
    """The model settings of one role. No model: the role works without one."""

    model: str = ""  # "model@provider"
    second: str = ""  # asked when the first cannot answer
    max_tokens: int = 1000  # of a reply
    temperature: float = 0.0
    timeout: float = 30.0  # seconds for one call, its retries not counted

    def models(self) -> list[str]:
        """The models to ask, in order."""
        return [name for name in (self.model, self.second) if name]
