"""Model: how an agent asks a language model. Every call is journalled, priced and bounded."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel

from agents.llm import cost, dialects, journal
from agents.llm.journal import Entry, Subject
from agents.llm.outcomes import ModelFailure, Outcome, named, refuse_unusable, telling
from agents.llm.requests import Choice, Reply, Request, Tokens
from agents.llm.retry import Failed, Listener, OnText, nothing, obtain
from agents.llm.schema import THINKING, parsed, remedy, schema_of, with_room
from agents.models import ModelCall
from prompts.prompt import Prompt, Rendered

Shape = TypeVar("Shape", bound=BaseModel)
Result = TypeVar("Result")
# Nothing that another model could do better.
FINAL = frozenset({Outcome.BUDGET_SPENT, Outcome.OUT_OF_TIME})


@dataclass(frozen=True)
class Question:
    """What one model is asked: a request, and what it is equal to where requests are compared."""

    rendered: Rendered
    request: Request
    same: Request
    documents: tuple[str, ...]
    mends: str = ""  # the digest of the question whose reply this one mends

    def changed(self, change: Callable[[Request], Request]) -> "Question":
        """Return the question with both requests changed alike."""
        return replace(
            self, request=change(self.request), same=change(self.same), mends=self.same.digest()
        )


@dataclass
class Model:
    """The models of one role, asked for one subject: a step of a turn, or a document."""

    choice: Choice
    subject: Subject
    deadline: datetime | None = None
    fresh: timedelta = timedelta(0)  # how old a reply to an equal request may be
    tokens: Tokens = field(default_factory=Tokens)  # where an answer is told while it is written
    insist: Callable[[], None] = nothing  # raises when a reply would come too late to be used
    journal: Any = journal  # where calls are found and kept; a replay brings its own
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
        asked = self._questions(prompt, values, alike, documents, shape)
        return self._first(asked, lambda question: self._mended(question, _in_shape(shape)))

    def write(
        self,
        prompt: Prompt,
        /,
        *,
        on_text: OnText | None = None,
        on_restart: Callable[[], None] | None = None,
        documents: tuple[str, ...] = (),
        **values: Any,
    ) -> Reply:
        """Return the text a model writes; `on_text` sees its pieces while they arrive.

        `on_restart` says that the pieces so far are void: the text begins again. A reply that hit
        the limit of tokens is returned with `finish_reason` "length". Raises ModelFailure.
        """
        asked = self._questions(prompt, values, None, documents)
        listener = Listener(on_text, on_restart)

        def written(question: Question) -> Reply:
            listener.restart()
            try:
                return self._reply(question, listener, whole=False)[0]
            except ModelFailure as failure:
                if failure.outcome is not Outcome.TRUNCATED:
                    raise
                roomier = question.changed(partial(with_room, THINKING))
            return self._reply(roomier, listener, whole=False)[0]

        return self._first(asked, written)

    def _questions(
        self,
        prompt: Prompt,
        values: dict[str, Any],
        alike: dict[str, Any] | None,
        documents: tuple[str, ...],
        shape: type[BaseModel] | None = None,
    ) -> list[Question]:
        rendered = prompt.render(values)
        same = prompt.render(values | alike) if alike else rendered
        return [
            Question(
                rendered,
                self._request(name, rendered, shape),
                self._request(name, same, shape),
                documents,
            )
            for name in self.choice.models()
        ]

    def _request(self, model: str, rendered: Rendered, shape: type[BaseModel] | None) -> Request:
        return Request(
            model=model,
            messages=rendered.messages,
            max_tokens=self.choice.max_tokens,
            temperature=self.choice.temperature,
            schema_name=shape.__name__ if shape else "",
            schema=schema_of(shape) if shape else {},
        )

    def _first(self, questions: list[Question], ask: Callable[[Question], Result]) -> Result:
        """Return what the first model says that can answer."""
        failures: list[ModelFailure] = []
        for question in questions:
            try:
                return ask(question)
            except ModelFailure as failure:
                failures.append(failure)
                if failure.outcome in FINAL:
                    break
        raise telling(failures)

    def _mended(self, question: Question, read: Callable[[Reply], Result]) -> Result:
        """Ask, and once more if the model can do better when it is told what was wrong."""
        try:
            return self._read(question, read)
        except ModelFailure as failure:
            change = remedy(failure)
            if change is None:
                raise
            shaped = bool(question.request.schema)
            if shaped and failure.outcome in {Outcome.MALFORMED, Outcome.WRONG_SCHEMA}:
                dialects.spell_out(question.request.model)
            try:
                return self._read(question.changed(change), read)
            except ModelFailure as second:
                raise telling([failure, second]) from second

    def _read(self, question: Question, read: Callable[[Reply], Result]) -> Result:
        reply, call = self._reply(question, Listener())
        try:
            return read(reply)
        except ModelFailure as failure:
            told = ModelFailure(
                failure.outcome,
                f"{named(reply.model)}: {failure}",
                said=failure.said,
                problem=str(failure),
            )
            self.journal.amend(call, told)
            raise told from failure

    def _reply(
        self, question: Question, listener: Listener, *, whole: bool = True
    ) -> tuple[Reply, int]:
        """Return the reply, from the journal or the provider, and the id of its row."""
        self.number += 1
        entry = Entry(
            self.subject,
            self.number,
            question.rendered,
            question.request,
            question.same.digest(),
            question.documents,
            self.fresh,
            tuple(self.calls),
            question.mends,
        )
        stored = self.journal.find(entry)
        reply = self.journal.reply_of(stored) if stored else None
        if reply is None:
            reply, stored = self._obtained(entry, listener)
        elif reply.text:
            listener.tell(reply.text)
        self.calls.append(stored.pk)
        try:
            refuse_unusable(reply, whole=whole)
        except ModelFailure as failure:
            self.journal.amend(stored.pk, failure)
            raise
        return reply, stored.pk

    def _obtained(self, entry: Entry, listener: Listener) -> tuple[Reply, ModelCall]:
        """Ask the provider; what came of it is stored before anybody looks at it."""
        try:
            cost.allow(self.subject.owner, self.subject.key)
            reply, attempts = obtain(
                entry.request,
                seconds=self.choice.timeout,
                deadline=self.deadline,
                turn=self.subject.envelope_id,
                another=entry.request.model != self.choice.models()[-1],
                listener=listener,
                insist=self.insist,
            )
        except Failed as failed:
            self.calls.append(self.journal.failed(entry, failed.failure, failed.attempts).pk)
            raise failed.failure from failed
        except ModelFailure as failure:
            self.calls.append(self.journal.failed(entry, failure, []).pk)
            raise
        return reply, self.journal.answered(entry, reply, attempts)


def _in_shape(shape: type[Shape]) -> Callable[[Reply], Shape]:
    return lambda reply: parsed(reply.text, shape)
