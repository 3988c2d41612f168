"""Model: how an agent asks a language model. Every call is journalled, priced and bounded."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel

from agents.llm import cost, dialects, journal
from agents.llm.degeneration import ECHOED_AT_LENGTH, Material
from agents.llm.draft import Draft
from agents.llm.journal import Entry, Subject
from agents.llm.outcomes import ModelFailure, Outcome, most_telling, refuse_unusable, with_address
from agents.llm.requests import Choice, Message, Reply, Request
from agents.llm.retry import Listener, OnText, RetriesExhausted, nothing, send_with_retries
from agents.llm.schema import THINKING, parse, repair, schema_of, with_more_tokens
from agents.llm.stops import TurnEnded
from agents.llm.token_stream import TokenStream
from agents.models import ModelCall
from prompts.prompt import Prompt, Rendered

Shape = TypeVar("Shape", bound=BaseModel)
Result = TypeVar("Result")
# Nothing that another model could do better.
FINAL = frozenset({Outcome.BUDGET_SPENT})


@dataclass(frozen=True)
class Question:
    """What one model is asked: a request, and what it is equal to where requests are compared."""

    rendered: Rendered
    request: Request
    comparable: Request
    documents: tuple[str, ...]
    mends: str = ""  # the digest of the question whose reply this one mends

    def changed(self, change: Callable[[Request], Request]) -> "Question":
        """Return the question with both requests changed alike."""
        return replace(
            self,
            request=change(self.request),
            comparable=change(self.comparable),
            mends=self.comparable.digest(),
        )


@dataclass
class Model:
    """The models of one role, asked for one subject: a step of a turn, or a document."""

    choice: Choice
    subject: Subject
    deadline: datetime | None = None
    fresh: timedelta = timedelta(0)  # how old a reply to an equal request may be
    answer: Choice | None = None  # who writes the turn's answer; None: whom the settings name
    # Where an answer is shown while it is written.
    tokens: TokenStream = field(default_factory=TokenStream)
    # Raises when a reply would come too late to be used.
    before_attempt: Callable[[], None] = nothing
    journal: Any = journal  # where calls are found and kept; a replay brings its own
    number: int = 0  # of the last call
    calls: list[int] = field(default_factory=list)  # ids of the ModelCall rows, in order

    def ask(
        self,
        prompt: Prompt,
        shape: type[Shape],
        /,
        *,
        cached_as: dict[str, Any] | None = None,
        documents: tuple[str, ...] = (),
        **values: Any,
    ) -> Shape:
        """Return the reply to a prompt in this shape. Raises ModelFailure.

        `values` fill the prompt in. `cached_as` replaces some of them where requests are compared:
        what differs only there may share a reply. `documents` are the ids of those quoted in it.
        """
        questions = self._questions(prompt, values, cached_as, documents, shape)
        material = Material(questions[0].request.messages, _texts(values))
        return self._first_answer(
            questions, lambda question: self._with_repair(question, shape, material)
        )

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

        `on_restart` says that the pieces so far are void: the text begins again, or there is none.
        A reply that was cut is returned with `finish_reason` "length" where its tokens were used
        up, and with "fragment" where it ended in the midst of a word twice. What models put around
        an answer is taken off. Raises ModelFailure.
        """
        questions = self._questions(prompt, values, None, documents)
        heard = Listener(on_text, on_restart)
        draft = Draft(questions[0].request.messages, _texts(values), heard)
        listener = Listener(draft.take, draft.restart)

        def attempt(question: Question, *, last: bool) -> Reply:
            listener.restart()
            reply, call = self._reply(question, listener, whole=False)
            with self._noted(call):
                return draft.ended(reply, last=last)

        def answer(question: Question) -> Reply:
            try:
                return attempt(question, last=False)
            except ModelFailure as failure:
                if not _may_be_written_again(failure):
                    raise
                if failure.outcome is Outcome.TRUNCATED:
                    question = question.changed(partial(with_more_tokens, THINKING))
            return attempt(question, last=True)

        try:
            return self._first_answer(questions, answer)
        except ModelFailure:
            listener.restart()
            raise

    def converse(
        self,
        prompt: Prompt,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        /,
        *,
        may_call: bool = True,
        documents: tuple[str, ...] = (),
        **values: Any,
    ) -> tuple[Reply, int]:
        """Return what a model says after the prompt and these messages, and the id of its call.

        It may want some of the `tools` called, as long as it `may_call` any. No earlier reply
        stands for it: what follows from one happens. Raises ModelFailure.
        """

        def extended(request: Request) -> Request:
            whole = (*request.messages, *messages)
            return replace(request, messages=whole, tools=tuple(tools), may_call=may_call)

        questions = [
            replace(each, request=extended(each.request), comparable=extended(each.comparable))
            for each in self._questions(prompt, values, None, documents)
        ]

        def attempt(question: Question) -> tuple[Reply, int]:
            try:
                return self._reply(question, Listener())
            except ModelFailure as failure:
                if failure.outcome is not Outcome.TRUNCATED:
                    raise
                roomier = question.changed(partial(with_more_tokens, THINKING))
            return self._reply(roomier, Listener())

        return self._first_answer(questions, attempt)

    def _questions(
        self,
        prompt: Prompt,
        values: dict[str, Any],
        cached_as: dict[str, Any] | None,
        documents: tuple[str, ...],
        shape: type[BaseModel] | None = None,
    ) -> list[Question]:
        rendered = prompt.render(values)
        comparable = prompt.render(values | cached_as) if cached_as else rendered
        return [
            Question(
                rendered,
                self._request(name, rendered, shape),
                self._request(name, comparable, shape),
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

    def _first_answer(self, questions: list[Question], ask: Callable[[Question], Result]) -> Result:
        """Return what the first model says that can answer."""
        failures: list[ModelFailure] = []
        for question in questions:
            try:
                return ask(question)
            except ModelFailure as failure:
                failures.append(failure)
                if failure.outcome in FINAL:
                    break
        raise most_telling(failures)

    def _with_repair(self, question: Question, shape: type[Shape], material: Material) -> Shape:
        """Ask, and once more if the model can do better when it is told what was wrong."""
        try:
            return self._in_shape(question, shape, material)
        except ModelFailure as failure:
            change = repair(failure)
            if change is None:
                raise
            try:
                return self._in_shape(question.changed(change), shape, material)
            except ModelFailure as second:
                raise most_telling([failure, second]) from second

    def _in_shape(self, question: Question, shape: type[Shape], material: Material) -> Shape:
        reply, call = self._reply(question, Listener())
        with self._noted(call):
            try:
                _refuse_echo(reply, material)
                parsed = parse(reply.text, shape, material.fault)
            except ModelFailure as failure:
                if failure.outcome is not Outcome.EMPTY:
                    dialects.missed(question.request)
                name = with_address(reply.model)
                raise ModelFailure(
                    failure.outcome,
                    f"{name}: {failure}",
                    reply=failure.reply,
                    problem=failure.problem,
                ) from failure
        dialects.fitted(question.request)
        return parsed

    @contextmanager
    def _noted(self, call: int) -> Iterator[None]:
        """Note with the row of a call that its reply turned out to be none."""
        try:
            yield
        except ModelFailure as failure:
            self.journal.amend(call, failure)
            raise

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
            question.comparable.digest(),
            question.documents,
            timedelta(0) if question.request.tools else self.fresh,
            tuple(self.calls),
            question.mends,
        )
        stored = self.journal.find(entry)
        reply = self.journal.reply_of(stored) if stored else None
        if reply is None:
            reply, stored = self._from_provider(entry, listener)
        elif reply.text:
            listener.add(reply.text)
        self.calls.append(stored.pk)
        try:
            request = question.request
            may_call = bool(request.tools) and request.may_call
            refuse_unusable(reply, whole=whole, may_call=may_call)
        except ModelFailure as failure:
            self.journal.amend(stored.pk, failure)
            raise
        return reply, stored.pk

    def _from_provider(self, entry: Entry, listener: Listener) -> tuple[Reply, ModelCall]:
        """Ask the provider; what came of it is stored before anybody looks at it."""
        # Who may not ask any more leaves no row of a call that may have been paid.
        self.before_attempt()
        call = self.journal.begin(entry)
        try:
            cost.check_budget(self.subject.owner, self.subject.key, besides=call.pk)
            reply, attempts = send_with_retries(
                entry.request,
                role=self.subject.role,
                seconds=self.choice.timeout,
                deadline=self.deadline,
                turn=self.subject.envelope_id,
                has_other_model=entry.request.model != self.choice.models()[-1],
                listener=listener,
                before_attempt=self.before_attempt,
                answer=self.answer,
            )
        except RetriesExhausted as exhausted:
            self.calls.append(
                self.journal.store_failure(call, exhausted.failure, exhausted.attempts).pk
            )
            raise exhausted.failure from exhausted
        except ModelFailure as failure:
            self.calls.append(self.journal.store_failure(call, failure, []).pk)
            raise
        except TurnEnded:
            journal.give_up(call)
            raise
        return reply, self.journal.store_reply(call, reply, attempts)


def _texts(values: dict[str, Any]) -> list[str]:
    """What who runs Docent wrote into a prompt, among other values: a reply may say it."""
    return [value for value in values.values() if isinstance(value, str)]


def _refuse_echo(reply: Reply, material: Material) -> None:
    """Raise ModelFailure for a reply that repeats its prompt: examples have the shape, too."""
    if material.echoed(reply.text, ECHOED_AT_LENGTH):
        raise ModelFailure(
            Outcome.MALFORMED, "the reply repeats its instructions", reply=reply.text
        )


def _may_be_written_again(failure: ModelFailure) -> bool:
    again = failure.outcome in {Outcome.TRUNCATED, Outcome.MALFORMED}
    return again and failure.mendable
