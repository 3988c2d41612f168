"""Comparison: what a replay came to beside what was written then, as JSON values."""

from typing import Any

from agents.models import ModelCall
from agents.names import Role
from agents.replaying.walk import Played, Walk
from agents.usage import dollars


def comparison(walk: Walk) -> dict[str, Any]:
    """Return both sides of a replay that has run, step by step, and whether they are the same.

    A step's `then` and `now` hold only what differs. `how` is "stored" for a step taken as it was
    written then. A call's `how` is "journal" (answered then), "replayed" (asked in an earlier
    replay) or "asked" (just now, and paid for). Cost in US dollars; None: some of it is not known.
    """
    envelope = walk.envelope
    steps = [_step(played) for played in walk.played]
    route = {
        "then": [step.role for step in walk.steps if step.role != Role.MANAGER],
        "now": [str(played.role) for played in walk.played if played.role != Role.MANAGER],
    }
    answer = {"then": str(envelope.payload.get("response", "")), "now": walk.answer}
    status = {"then": envelope.status, "now": walk.status}
    same = not any(step["then"] or step["now"] for step in steps)
    return {
        "turn_id": str(envelope.pk),
        "same": same and all(side["then"] == side["now"] for side in (route, answer, status)),
        "route": route,
        "status": status,
        "answer": answer,
        "steps": steps,
        "notes": _unused(walk),
        "usage": _usage(walk),
    }


def _step(played: Played) -> dict[str, Any]:
    then = played.then
    before = _shown(then.output, then.mode) if then else {}
    after = _shown(played.wrote, played.mode)
    differing = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {
        "number": played.number,
        "then_number": then.number if then else None,
        "role": str(played.role),
        "how": played.how,
        "mode": played.mode or None,
        "degraded": played.degraded or None,
        "then": {name: before[name] for name in differing if name in before},
        "now": {name: after[name] for name in differing if name in after},
        "calls": _calls(played),
    }


def _shown(wrote: dict[str, Any], mode: str) -> dict[str, Any]:
    return wrote | ({"(mode)": mode} if mode else {})


def _calls(played: Played) -> list[dict[str, Any]]:
    recorded = played.calls
    if recorded is None:
        return []
    kinds = {"journal": recorded.found, "replayed": recorded.again, "asked": recorded.asked}
    return [_call(call, how) for how, calls in kinds.items() for call in calls]


def _call(call: ModelCall, how: str) -> dict[str, Any]:
    return {
        "how": how,
        "prompt": call.prompt,
        "prompt_hash": call.prompt_hash,
        "model": call.model,
        "outcome": call.outcome,
        "error": call.error or None,
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
        "cost": None if call.cost is None else dollars(call.cost),
        "seconds": call.seconds,
    }


def _usage(walk: Walk) -> dict[str, Any]:
    """What the replay asked just now, and what it found answered."""
    calls = [call for played in walk.played for call in _calls(played)]
    asked = [call for call in calls if call["how"] == "asked"]
    costs = [call["cost"] for call in asked]
    return {
        "asked": len(asked),
        "found": len(calls) - len(asked),
        "input_tokens": sum(call["input_tokens"] or 0 for call in asked),
        "output_tokens": sum(call["output_tokens"] or 0 for call in asked),
        "cost": None if None in costs else sum(costs),
    }


def _unused(walk: Walk) -> list[str]:
    """What was to be changed and played no part."""
    calls = [call for played in walk.played for call in _calls(played)]
    prompts = {call["prompt"] for call in calls}
    askers = {"expansion" if each.role == Role.SEARCH else each.role for each in walk.played}
    return [
        *(f"No call of this turn used the prompt {name}." for name in walk.changes.prompts
          if name not in prompts),
        *(f"{asker} had nothing to do in this turn." for asker in walk.changes.models
          if asker not in askers),
    ]  # fmt: skip
