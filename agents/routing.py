"""Routing: the whole conversation between agents, as one table. Read it from the bottom up.

Each stage has one small function that looks at the payload and decides who works next or how
the turn ends. Nothing else routes. Agents propose (a route, a verdict); this table disposes,
and only over values that were validated when they were written.
"""

from collections.abc import Callable
from typing import Any

from django.conf import settings

from agents.analysis.shapes import Plan, Request
from agents.attributes import DECLINING_REASONS, Reason, RefundForm
from agents.decision import ANSWER, Decision, Payload, Stage, clarify, end, send
from agents.names import Role, Route, Status
from agents.support.dialogue.replies import answers
from agents.words import Phrase

# Work at the same time; what they write may not overlap.
PARALLEL_ROLES = (Role.GUARDRAILS, Role.ROUTER, Role.SEARCH, Role.MEMORY)
# What who leaves hears, beside a goodbye.
PARTING = {"thanks": Phrase.THANKED, "giving_up": Phrase.GIVEN_UP}
# So sure the router must be to send away what search answers.
SURE_ROUTE = 0.7
# What was found to be missing in passages, and wrong with what was made of them.
FINDINGS = ("evaluation", "limitations", "quality_analysis")
# An answer that is worth so much less than the one before it is not sent instead, whoever approves
# it. By their nearness to the question alone two answers of people to questions of one conversation
# are so far apart in 56 of 100 cases (MT-RAG, cloud; 177 answers), the halves of one answer in 11.
CLEARLY_LESS = 0.3
# Why an analysis does not go on with its plan.
EXHAUSTED = frozenset({"budget", "time"})
# What search says of what it found when the collection answers the question.
ANSWERED = ("excellent", "good")
# From here on search is surer than not, and what it found counts as the answer, as in the response.
LIKELY = 0.5


def _decline(payload: Payload) -> Decision | None:
    """Decline what is clearly unsafe, and what is only suspected unless the documents answer it.

    They do where search finds that they do, and every word of the question stands in them: they
    speak of a guest and of tea, and of poisoning nobody. A long post always has a word that they
    lack; where all it may want is to give Docent orders, it is enough that search is surer than
    not, for a quotation obeys nobody. A customer in anger is served, too: no tool of billing
    reaches what is another's.
    """
    request = clarify(payload, Role.GUARDRAILS)
    if not request or payload.get("guardrails_verdict") != "suspected":
        return request
    stats = payload.get("search_stats") or {}
    sure = (stats.get("certainty") or 0.0) >= LIKELY
    harmless = not stats.get("absent") or (
        sure and request.notes["clarification_reason"] == Reason.SYSTEM_ABUSE
    )
    answered = payload.get("search_quality") in ANSWERED and harmless
    return None if answered or _is_billing(payload) else request


def start(payload: Payload) -> Decision:
    """A text that starts with a slash is a command."""
    return send(Role.COMMAND if payload["text"].lstrip().startswith("/") else Role.LANG)


def lang(payload: Payload) -> Decision:
    """A plain answer to billing's open form goes there as it is; else the text is translated.

    English needs no translation when the deployment says so.
    """
    if _completes_form(payload):
        return send(Role.BILLING, route=Route.BILLING)
    if settings.TRANSLATE_ENGLISH == "skip" and payload["language"] == "en":
        return send(Role.ESSENCE, text_eng=payload["text"])
    return send(Role.TRANSLATION)


def _completes_form(payload: Payload) -> bool:
    """Whether billing has asked for what this is: a yes, a sum, an invoice, a reason."""
    form = payload.get("refund_form")
    if not form or Route.BILLING not in payload["enabled_routes"]:
        return False
    is_asked_else = payload.get("open_clarification") is not None
    form = RefundForm.model_validate(form)
    return answers(payload["text"], form, is_asked_else=is_asked_else)


def translation(payload: Payload) -> Decision:
    """The translated text goes on to be understood."""
    return send(Role.ESSENCE)


def essence(payload: Payload) -> Decision:
    """Who leaves is let go, small talk is answered; all else is looked at from three sides."""
    if payload.get("clarification_result") == "exit":
        phrase = PARTING.get(payload.get("small_talk") or "goodbye", Phrase.FAREWELL)
        return end(Stage.ESSENCE, Status.COMPLETED, phrase=phrase)
    talk = payload.get("small_talk")
    # Who asks for a person may find in the documents how to reach one, unless one is here.
    if talk and (talk != "person" or settings.HANDOVER):
        return send(Role.FALLBACK)
    if not settings.PARALLEL_INTAKE:
        return Decision(Stage.GUARDRAILS, (Role.GUARDRAILS, *_memory(payload)))
    roles = (Role.GUARDRAILS, *_router(payload), *_search(payload), *_memory(payload))
    return Decision(Stage.INTAKE, roles, notes={"search_rounds": 1})


def _memory(payload: Payload) -> tuple[Role, ...]:
    """Messages that leave the history are folded into the summary, beside everything else."""
    return (Role.MEMORY,) if payload.get("leaving") else ()


def _router(payload: Payload) -> tuple[Role, ...]:
    """One enabled route needs no router."""
    return (Role.ROUTER,) if len(payload["enabled_routes"]) > 1 else ()


def _search(payload: Payload) -> tuple[Role, ...]:
    """Where the documents are closed nothing is looked up in them."""
    return (Role.SEARCH,) if Route.DOCUMENTATION in payload["enabled_routes"] else ()


def guardrails(payload: Payload) -> Decision:
    """One after another: refused, or on to the router, or straight to search.

    What is only suspected goes on, too: what search finds decides.
    """
    suspected = payload.get("guardrails_verdict") == "suspected"
    if not suspected and (request := clarify(payload, Role.GUARDRAILS)):
        return request
    if _router(payload):
        return send(Role.ROUTER)
    return router(payload)


def _is_billing(payload: Payload) -> bool:
    """Whether the customer's account is asked about; where nothing else is open, it always is."""
    if _router(payload):
        return payload.get("route") == Route.BILLING
    return Route.BILLING in payload["enabled_routes"]


def _is_analysis(payload: Payload) -> bool:
    """Whether documents are to be compared or judged; where nothing else is open, they are."""
    if _router(payload):
        return payload.get("route") == Route.ANALYSIS
    return Route.ANALYSIS in payload["enabled_routes"]


def _analyse() -> Decision:
    """An analysis is planned first; it may take longer than other answers."""
    notes = {"route": Route.ANALYSIS, "plan_step": 0, "extra_rounds": 0}
    seconds = settings.ANALYSIS_DEADLINE_SECONDS
    return Decision(Stage.ORCHESTRATOR, (Role.ORCHESTRATOR,), notes=notes, seconds=seconds)


def router(payload: Payload) -> Decision:
    """One after another: a vague question waits, a routed or doubtful one is looked up."""
    if _is_billing(payload):
        return _decline(payload) or send(Role.BILLING, route=Route.BILLING)
    if request := clarify(payload, Role.ROUTER):
        return _decline(payload) or request
    if _is_analysis(payload):
        return _decline(payload) or _analyse()
    if not _search(payload) or (payload.get("route") == Route.FALLBACK and _is_sure(payload)):
        return _decline(payload) or send(Role.FALLBACK)
    return send(Role.SEARCH, search_rounds=1)


def intake(payload: Payload) -> Decision:
    """All three returned: the gravest question to the user comes first, then the route.

    What is missing for billing, billing asks for itself.
    """
    if request := _decline(payload) or _talk(payload):
        return request
    if _is_billing(payload):
        return send(Role.BILLING, route=Route.BILLING)
    request = clarify(payload, Role.ESSENCE, Role.ROUTER)
    if _is_analysis(payload):
        return request or _analyse()
    if not _search(payload):
        return send(Role.FALLBACK)
    return request or search(payload)


def _talk(payload: Payload) -> Decision | None:
    """Answer small talk that the documents do not answer."""
    answered = payload.get("search_quality") == "excellent"
    return send(Role.FALLBACK) if payload.get("small_talk") and not answered else None


def _is_sure(payload: Payload) -> bool:
    return bool((payload.get("route_confidence") or 0.0) >= SURE_ROUTE)


def search(payload: Payload) -> Decision:
    """Excellent passages go to the answer, others to the evaluator.

    So do excellent ones that may lack what is wished for.
    """
    if request := _decline(payload) or _talk(payload):
        return request
    if request := clarify(payload, Role.ESSENCE, Role.SEARCH):
        return request
    found = payload.get("search_quality")
    # A router in doubt does not throw away what search found.
    in_vain = _is_sure(payload) or found not in {"excellent", "good"}
    if _router(payload) and payload.get("route") == Route.FALLBACK and in_vain:
        return send(Role.FALLBACK)
    unproven = (payload.get("search_stats") or {}).get("unproven")
    is_enough = found == "excellent" and not unproven
    next_role = Role.AUGMENTATION if is_enough else Role.EVALUATOR
    asked = {"small_talk": None} if payload.get("small_talk") else {}
    return send(next_role, route=Route.DOCUMENTATION, **asked)


def _rounds_left(payload: Payload) -> bool:
    return bool(payload.get("search_rounds", 0) < settings.MAX_SEARCH_ITERATIONS)


def evaluator(payload: Payload) -> Decision:
    """Insufficient passages are searched once more; then what is there has to do."""
    sufficient = (payload.get("evaluation") or {}).get("sufficient", False)
    if not sufficient and _rounds_left(payload) and payload.get("refined_query"):
        return _search_again(payload, (payload.get("evaluation") or {}).get("missing", ""))
    return clarify(payload, Role.EVALUATOR) or send(Role.AUGMENTATION)


def _search_again(payload: Payload, missing: str, **notes: Any) -> Decision:
    """Search for the refined query; what was missed before may be found now, so it is no fact."""
    tried = payload.get("tried_searches") or [{"query": payload.get("canonical_question", "")}]
    tried = [
        *tried[:-1],
        tried[-1] | {"missing": missing},
        {"query": payload.get("refined_query", "")},
    ]
    notes |= dict.fromkeys(FINDINGS) | {"tried_searches": tried}
    return send(Role.SEARCH, **notes, search_rounds=payload.get("search_rounds", 0) + 1)


def augmentation(payload: Payload) -> Decision:
    """Question and passages are ready for the answer."""
    return send(Role.RESPONSE)


def response(payload: Payload) -> Decision:
    """An answer is checked before anyone sees it; a better one before it is not given up."""
    request = clarify(payload, Role.RESPONSE)
    best = payload.get("best_answer") or {}
    if request and _is_worth(best):
        return _with_reservations(best)
    return request or send(Role.QUALITY)


def quality(payload: Payload) -> Decision:
    """Approved answers go out; others go back, at most MAX_QUALITY_RETRIES times.

    One that came back as it was before would not become another.
    """
    if request := clarify(payload, Role.QUALITY):
        return request
    decision = payload.get("quality_decision")
    best = _best_answer(payload)
    if decision in {"approve", "approve_with_reservations"}:
        is_worse = _gain(payload, best) < -CLEARLY_LESS
        return _with_reservations(best) if is_worse else end(Stage.QUALITY, Status.COMPLETED)
    returns = payload.get("quality_returns", 0)
    if returns >= settings.MAX_QUALITY_RETRIES or _is_same(payload):
        return _with_reservations(best)
    notes = {"best_answer": best, "quality_returns": returns + 1}
    if _is_analysis(payload):
        return _synthesise(**notes)
    if decision == "research":
        return _search_again(payload, payload.get("quality_analysis", ""), **notes)
    return send(Role.RESPONSE, **notes)


def overdue(payload: Payload) -> dict[str, Any]:
    """Return what a turn ends with that has no time left; empty where nothing was answered.

    The best answer there was, or the first one, which nobody looked at but a program.
    """
    answer = payload.get("best_answer") or {}
    unread = payload["stage"] == Stage.QUALITY and not payload.get("quality_decision")
    if unread and payload.get("citations_used"):
        answer = {name: payload.get(name) for name in ANSWER}
    elif not _is_worth(answer):
        return {}
    return _with_reservations(answer).notes | {"stage": Stage.QUALITY}


def _is_worth(answer: Payload) -> bool:
    """Whether anything of an answer holds."""
    return bool(answer.get("answer_worth"))


def _is_same(payload: Payload) -> bool:
    """Whether an answer is the one that was sent back before."""
    before = payload.get("best_answer")
    return before is not None and payload.get("response") == before["response"]


def _with_reservations(answer: dict[str, Any]) -> Decision:
    return end(
        Stage.QUALITY, Status.COMPLETED, **answer, quality_decision="approve_with_reservations"
    )


def _best_answer(payload: Payload) -> dict[str, Any]:
    """The better of this answer and the best before it.

    By what a program can tell where that sets them clearly apart, else by the quality score.
    """
    answer = {name: payload.get(name) for name in ANSWER}
    best = payload.get("best_answer")
    if not best:
        return answer
    gain = _gain(answer, best)
    scores_more = (answer["quality_score"] or 0) >= (best.get("quality_score") or 0)
    return answer if gain > CLEARLY_LESS or (gain >= -CLEARLY_LESS and scores_more) else best


def _gain(answer: Payload, best: Payload) -> float:
    """By how much an answer is worth more than another one, by what a program can tell."""
    return float((answer.get("answer_worth") or 0) - (best.get("answer_worth") or 0))


def orchestrator(payload: Payload) -> Decision:
    """A plan is begun. What is simple, and what nobody could plan, the documents answer."""
    if request := clarify(payload, Role.ORCHESTRATOR):
        return request
    if payload.get("response"):
        return send(Role.QUALITY)
    plan = Plan.model_validate(payload["analysis_plan"])
    is_simple = plan.complexity_score < settings.ANALYSIS_SIMPLE and _search(payload)
    return _documents(payload) if is_simple or not plan.steps else specialists(payload)


def specialists(payload: Payload) -> Decision:
    """One step of the plan after the other, as long as there is money and time; then the answer."""
    plan = Plan.model_validate(payload["analysis_plan"])
    step = payload.get("plan_step", 0)
    reasons = {each["reason"] for each in payload.get("shortcomings") or ()}
    if step < len(plan.steps) and reasons.isdisjoint(EXHAUSTED):
        return Decision(Stage.SPECIALISTS, tuple(plan.steps[step]), notes={"plan_step": step + 1})
    return _synthesise()


def _synthesise(**notes: Any) -> Decision:
    """The orchestrator answers from what the specialists gave; an answer before is forgotten."""
    return Decision(Stage.SYNTHESIS, (Role.ORCHESTRATOR,), notes=dict.fromkeys(ANSWER) | notes)


def synthesis(payload: Payload) -> Decision:
    """Once more specialists may be asked; an answer is checked, and without one documents do it."""
    request = Request.model_validate(payload.get("analysis_request") or {})
    if request.specialists and not payload.get("extra_rounds"):
        notes = {"extra_rounds": 1, "analysis_request": None}
        return Decision(Stage.SPECIALISTS, tuple(request.specialists), notes=notes)
    if payload.get("response"):
        return send(Role.QUALITY)
    best = payload.get("best_answer") or {}
    return _with_reservations(best) if _is_worth(best) else _documents(payload)


def _documents(payload: Payload) -> Decision:
    """Let the documentation route answer, where it is open."""
    if not _search(payload):
        return send(Role.FALLBACK)
    if payload.get("search_quality"):
        return search(payload)
    return send(Role.SEARCH, route=Route.DOCUMENTATION, search_rounds=1)


def clarification(payload: Payload) -> Decision:
    """The conversation waits for the user, unless nothing was asked, or often enough.

    Then a person answers, where there is one.
    """
    is_last = payload.get("clarification_rounds", 0) >= settings.MAX_CLARIFICATION_ROUNDS
    declines = payload.get("clarification_reason") in DECLINING_REASONS
    is_empty = (payload.get("search_stats") or {}).get("chunks") == 0
    if declines or is_empty:
        return end(Stage.CLARIFICATION, Status.COMPLETED)
    last = Status.WITH_STAFF if settings.HANDOVER else Status.COMPLETED
    return end(Stage.CLARIFICATION, last if is_last else Status.AWAITING_USER)


def fallback(payload: Payload) -> Decision:
    """Who asked for a person gets one, where there is one; else the last word was said."""
    is_asked_for = settings.HANDOVER and payload.get("small_talk") == "person"
    return end(Stage.FALLBACK, Status.WITH_STAFF if is_asked_for else Status.COMPLETED)


def final(payload: Payload) -> Decision:
    """The agent's response is the last word."""
    return end(Stage(payload["stage"]), Status.COMPLETED)


TABLE: dict[Stage, Callable[[Payload], Decision]] = {
    Stage.START: start,
    Stage.COMMAND: final,
    Stage.LANG: lang,
    Stage.TRANSLATION: translation,
    Stage.ESSENCE: essence,
    Stage.INTAKE: intake,
    Stage.GUARDRAILS: guardrails,
    Stage.ROUTER: router,
    Stage.SEARCH: search,
    Stage.EVALUATOR: evaluator,
    Stage.AUGMENTATION: augmentation,
    Stage.RESPONSE: response,
    Stage.QUALITY: quality,
    Stage.CLARIFICATION: clarification,
    Stage.BILLING: final,
    Stage.ORCHESTRATOR: orchestrator,
    Stage.SPECIALISTS: specialists,
    Stage.SYNTHESIS: synthesis,
    Stage.FALLBACK: fallback,
}


def decide(payload: Payload) -> Decision:
    """Return what happens after the stage the payload is in; a pure function."""
    return TABLE[Stage(payload["stage"])](payload)
