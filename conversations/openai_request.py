"""OpenAI request: what clients of OpenAI's API send, and what of it is taken or refused."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from django.conf import settings
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from rest_framework import exceptions

from conversations.models import Assistant, Message
from knowledge.postgres_text import is_storable, storable

# What is refused: an answer that ignored it would not be what was asked for.
REASONS = {
    "n": "A question has one answer.",
    "tools": "Tools of the client are not called.",
    "tool_choice": "Tools of the client are not called.",
    "functions": "Functions of the client are not called.",
    "function_call": "Functions of the client are not called.",
    "logprobs": "Probabilities of tokens are not known.",
    "top_logprobs": "Probabilities of tokens are not known.",
    "response_format": "Answers are text with citations, and no JSON.",
    "modalities": "Answers are text.",
    "audio": "Answers are text.",
    "web_search_options": "Answers come from the documents, not from the web.",
}
MOST_MESSAGES = 1000
MOST_PARTS = 100
LONGEST_WISH = Assistant._meta.get_field("tone").max_length or 0

Shape = TypeVar("Shape", bound=BaseModel)
Remark = tuple[Message.Author, str]


def _storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError("it holds a null character or half a character; send it as UTF-8")
    return text


def _boolean(value: Any) -> Any:
    """Refuse 0, which is False to Python and not in JSON."""
    if value is not None and not isinstance(value, bool):
        raise ValueError("it is true or false")
    return value


Text = Annotated[str, AfterValidator(_storable)]
No = Annotated[Literal[False], BeforeValidator(_boolean)]


class Sent(BaseModel):
    """A part of a request; what it holds beside the fields here is ignored."""

    model_config = ConfigDict(strict=True, extra="ignore")


class ContentPart(Sent):
    """A part of a message; only text is read."""

    type: str
    text: str | None = None


class ChatMessage(Sent):
    """One message. Those of tools are passed over."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Annotated[list[ContentPart], Field(max_length=MOST_PARTS)] | None = None

    @property
    def text(self) -> str:
        """Its text; other parts than text are left out."""
        content = self.content or ""
        parts = [content] if isinstance(content, str) else [part.text or "" for part in content]
        return "\n".join(parts).strip()

    @property
    def foreign_kinds(self) -> list[str]:
        """The kinds of its parts that are no text."""
        parts = self.content if isinstance(self.content, list) else []
        return [part.type for part in parts if part.type != "text"]


class TextFormat(Sent):
    """The only form of an answer."""

    type: Literal["text"]


class StreamOptions(Sent):
    """What a stream brings beside the answer."""

    include_usage: bool | None = None


class CompletionRequest(Sent):
    """The body of `POST /v1/chat/completions`; other fields of OpenAI's are ignored."""

    model: Text
    messages: list[ChatMessage] = Field(min_length=1, max_length=MOST_MESSAGES)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: Annotated[Text, Field(max_length=128)] | None = Field(
        None, description="Who asks, as `user_id` of `POST /api/chat/`."
    )
    metadata: (
        Annotated[
            dict[Annotated[Text, Field(max_length=64)], Annotated[Text, Field(max_length=512)]],
            Field(max_length=16),
        ]
        | None
    ) = Field(None, description="Returned as it is.")
    conversation_id: Annotated[str, Field(pattern=r"^[\w.:-]{1,64}$")] | None = Field(
        None,
        description="Continues your conversation of this name, or begins it; of `messages` then "
        "the last counts alone.",
    )
    # Checked and ignored: how an answer is written is not the client's to say.
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    seed: int | None = None
    # Refused unless they say what holds anyway.
    n: Annotated[int, Field(ge=1, le=1)] | None = None
    tools: Annotated[list[dict[str, Any]], Field(max_length=0)] | None = None
    tool_choice: Literal["none", "auto"] | None = None
    functions: Annotated[list[dict[str, Any]], Field(max_length=0)] | None = None
    function_call: Literal["none", "auto"] | None = None
    logprobs: No | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=0)] | None = None
    response_format: TextFormat | None = None
    modalities: Annotated[list[Literal["text"]], Field(max_length=1)] | None = None
    audio: None = None
    web_search_options: None = None

    def question(self) -> str:
        """Return the last message, which is the user's. Raises ValidationError."""
        place = self._place()
        message = self.messages[place]
        if kinds := message.foreign_kinds:
            raise invalid(f"messages[{place}].content", f"Only text is read, not {kinds[0]!r}.")
        return message.text

    def said_before(self) -> list[Remark]:
        """Return what user and assistant said before the question, oldest first.

        Each is cut at MAX_QUESTION_LENGTH; messages of others, and those without text, are left
        out.
        """
        told = [each for each in self.messages[: self._place()] if each.text]
        return [
            (Message.Author(each.role), storable(each.text[: settings.MAX_QUESTION_LENGTH]).strip())
            for each in told
            if each.role in {"user", "assistant"}
        ]

    def wish(self) -> str:
        """Return what the client's system messages say, on one line, as long as a tone may be."""
        told = [each.text for each in self.messages if each.role in {"system", "developer"}]
        return " ".join(storable(" ".join(told)).split())[:LONGEST_WISH]

    def _place(self) -> int:
        spoken = [
            place
            for place, each in enumerate(self.messages)
            if each.role not in {"system", "developer"}
        ]
        if not spoken or self.messages[spoken[-1]].role != "user":
            raise invalid("messages", "The last message must be the user's, of role 'user'.")
        return spoken[-1]


class EmbeddingsRequest(Sent):
    """The body of `POST /v1/embeddings`."""

    model: Text
    input: (
        Annotated[Text, Field(min_length=1, max_length=20_000)]
        | Annotated[
            list[Annotated[Text, Field(min_length=1, max_length=20_000)]],
            Field(min_length=1, max_length=64),
        ]
    )
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: int | None = None
    user: Annotated[Text, Field(max_length=128)] | None = None

    @property
    def texts(self) -> list[str]:
        """The texts, in their order."""
        return [self.input] if isinstance(self.input, str) else self.input


SHAPES = (CompletionRequest, ChatMessage, ContentPart, StreamOptions, EmbeddingsRequest)
FIELDS = {name for shape in SHAPES for name in shape.model_fields}


def read(shape: type[Shape], data: Any) -> Shape:
    """Return a body in its shape. Raises ValidationError, which names the first wrong field."""
    if not isinstance(data, Mapping):
        raise invalid("", "The body must be a JSON object.")
    try:
        return shape.model_validate(dict(data))
    except ValidationError as error:
        problems: dict[str, list[str]] = {}
        for each in error.errors(include_url=False, include_input=False):
            problems.setdefault(_param(each["loc"]), []).append(each["msg"])
        first = next(iter(problems))
        # Of the shapes a field may have, what is wrong with the one that came nearest.
        name = max((param for param in problems if param.startswith(first)), key=len)
        reason = REASONS.get(name.partition("[")[0].partition(".")[0], "")
        raise invalid(name, f"{'; or: '.join(problems[name])}. {reason}".rstrip()) from error


def invalid(param: str, message: str) -> exceptions.ValidationError:
    """Return the error that says what of a request is wrong."""
    return exceptions.ValidationError({param: [message]} if param else [message])


def _param(location: tuple[int | str, ...]) -> str:
    """Return a place such as `messages[0].content`; names of types are no part of it."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part in FIELDS:
            path += f".{part}" if path else part
    return path
