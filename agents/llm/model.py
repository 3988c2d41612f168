"""Model: how an agent asks a language model. Every call is journalled, priced and bounded."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from pydantic import BaseModel

from agents.llm import budget, journal
from agents.llm.choices import Choice
from agents.llm.journal import Entry, Subject
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.patience import Failed, obtain
from agents.llm.requests import Reply, Request
from agents.llm.structured import parsed, schema_of
from agents.llm.tokens import Tokens
from agents.llm.verdicts import refuse_unusable
from prompts.prompt import Prompt, Rendered

Shape = TypeVar("Shape", bound=BaseModel)
OnText = Callable[[str], None]
REPAIR = Prompt("_repair", "problem")
# A reply that did not have its shape is worth one more try, of the same model.
REPAIRABLE = frozenset({Outcome.EMPTY, Outcome.MALFORMED, Outcome.WRONG_SCHEMA})


@dataclass
class Model:
    """The models of one role, asked for one subject: a step of a turn, or a document."""

    choice: Choice
    subject: Subject
    deadline: datetime | None = None
    fresh: timedelta = timedelta(0)  # how old a reply to an equal request may be
    tokens: Tokens = field(default_factory=Tokens)  # where an answer is told while it is written
    number: int = 0  # of the last call
    calls: list[int] = field(default_factory=list)  # ids of the ModelCall rows, in order

    def ask(
        self,
        prompt: Prompt,
        shape: type[Shape],
        /,
        *,
        alike: dict[str, Any] | None = None,
        documents: tuple[str, ...] = (),
        **values: Any,
    ) -> Shape:
        """Return the reply to a prompt in this shape. Raises ModelFailure.

        `values` fill the prompt in. `alike` replaces some of them where requests are compared:
        what differs only there may share a reply. `documents` are the ids of those quoted in it.
        """
        rendered = prompt.render(values)
        same = prompt.render(values | alike) if alike else rendered
        failure: ModelFailure | None = None
        for name in self._models():
            request = self._request(name, rendered, shape)
            digest = self._request(name, same, shape).digest()
            try:
                return self._shaped(rendered, request, digest, documents, shape)
            except ModelFailure as error:
                failure = error
                if error.outcome in {Outcome.BUDGET_SPENT, Outcome.OUT_OF_TIME}:
                    break
        assert failure is not None  # noqa: S101
        raise failure

    def write(
        self,
        prompt: Prompt,
        /,
        *,
        on_text: OnText | None = None,
        on_restart: Callable[[], None] | None = None,
        alike: dict[str, Any] | None = None,
        documents: tuple[str, ...] = (),
        **values: Any,
    ) -> Reply:
        """Return the text a model writes; `on_text` sees its pieces while they arrive.

        `on_restart` says that the pieces so far are void: the text begins again. A reply that hit
        the limit of tokens is returned with `finish_reason` "length". Raises ModelFailure.
        """
        rendered = prompt.render(values)
        same = prompt.render(values | alike) if alike else rendered
        failure: ModelFailure | None = None
        for name in self._models():
            if failure and on_restart:
                on_restart()
            request = self._request(name, rendered)
            digest = self._request(name, same).digest()
            entry = self._entry(rendered, request, digest, documents)
            try:
                return self._reply(entry, on_text, on_restart, whole=False)
            except ModelFailure as error:
                failure = error
                if error.outcome in {Outcome.BUDGET_SPENT, Outcome.OUT_OF_TIME}:
                    break
        assert failure is not None  # noqa: S101
        raise failure

    def _models(self) -> Iterator[str]:
        yield from self.choice.models()

    def _request(
        self, model: str, rendered: Rendered, shape: type[BaseModel] | None = None
    ) -> Request:
        return Request(
            model=model,
            messages=rendered.messages,
            max_tokens=self.choice.max_tokens,
            temperature=self.choice.temperature,
            schema_name=shape.__name__ if shape else "",
            schema=schema_of(shape) if shape else {},
        )

    def _shaped(
        self,
        rendered: Rendered,
        request: Request,
        digest: str,
        documents: tuple[str, ...],
        shape: type[Shape],
    ) -> Shape:
        """Ask, and once more with what was wrong when the reply does not have the shape."""
        entry = self._entry(rendered, request, digest, documents)
        reply = Reply("")
        try:
            reply = self._reply(entry)
            return self._checked(reply, shape)
        except ModelFailure as failure:
            if failure.outcome not in REPAIRABLE:
                raise
            asked = REPAIR.render({"problem": str(failure)}).messages[1]
            said = {"role": "assistant", "content": reply.text or "(nothing)"}
            again = replace(request, messages=(*request.messages, said, asked))
            entry = self._entry(rendered, again, again.digest(), documents)
            return self._checked(self._reply(entry), shape)

    def _checked(self, reply: Reply, shape: type[Shape]) -> Shape:
        try:
            return parsed(reply.text, shape)
        except ModelFailure as failure:
            journal.amend(self.calls[-1], failure)
            raise

    def _entry(
        self, rendered: Rendered, request: Request, digest: str, documents: tuple[str, ...]
    ) -> Entry:
        self.number += 1
        return Entry(self.subject, self.number, rendered, request, digest, documents, self.fresh)

    def _reply(
        self,
        entry: Entry,
        on_text: OnText | None = None,
        on_restart: Callable[[], None] | None = None,
        *,
        whole: bool = True,
    ) -> Reply:
        """Return the reply to one entry, from the journal or the provider, checked."""
        if stored := journal.find(entry):
            self.calls.append(stored.pk)
            reply = journal.reply_of(stored)
            refuse_unusable(reply, whole=whole)
            if on_text:
                on_text(reply.text)
            return reply
        try:
            budget.allow(self.subject.owner)
            reply, attempts = obtain(
                entry.request,
                seconds=self.choice.timeout,
                deadline=self.deadline,
                on_text=on_text,
                on_restart=on_restart,
            )
        except Failed as failed:
            self.calls.append(journal.failed(entry, failed.failure, failed.attempts).pk)
            raise failed.failure from failed
        except ModelFailure as failure:
            self.calls.append(journal.failed(entry, failure, []).pk)
            raise
        self.calls.append(journal.answered(entry, reply, attempts).pk)
        try:
            refuse_unusable(reply, whole=whole)
        except ModelFailure as failure:
            journal.amend(self.calls[-1], failure)
            raise
        return reply
