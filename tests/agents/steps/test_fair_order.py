"""The order in which steps are taken: no user waits behind all turns of another."""

from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

from django.db.models import F

from agents.contract import Result
from agents.decision import Decision, Stage
from agents.manager import route
from agents.models import Envelope, Step
from agents.names import Role
from agents.steps import events
from agents.steps.doorbell import ring
from agents.steps.records import Claim, Conclusion, claim_ready
from agents.steps.steps import finish, perform_in_batches, perform_one_by_one
from tests.agents.claiming import claimed
from tests.conftest import Begin


def at(begin: Begin, role: Role, place: int) -> Envelope:
    """A turn of this place in its user's line, with a step for the role."""
    envelope = begin()
    envelope.steps.update(place=place)
    step = claimed(envelope.pk, 1)
    finish(step, Conclusion(decision=Decision(Stage.LANG, (role,))))
    return envelope


def order(role: Role) -> list[UUID]:
    """The turns whose steps are taken, one after the other."""
    turns = []
    while claims := claim_ready(role, 1):
        turns += [claim.envelope_id for claim in claims]
    return turns


def ids(turns: Iterable[Envelope]) -> list[UUID]:
    return [turn.pk for turn in turns]


def test_the_only_turn_of_a_user_goes_before_the_second_of_another(begin: Begin) -> None:
    first, second, third = (at(begin, Role.LANG, place) for place in range(3))
    only = at(begin, Role.LANG, 0)
    assert order(Role.LANG) == ids([first, only, second, third])


def test_turns_of_the_same_place_go_as_they_came(begin: Begin) -> None:
    turns = [at(begin, Role.LANG, 1) for _ in range(3)]
    Step.objects.filter(envelope=turns[2]).update(
        available_at=F("available_at") - timedelta(minutes=1)
    )
    assert order(Role.LANG) == ids([turns[2], turns[0], turns[1]])


def test_a_step_that_is_not_due_is_passed_over(begin: Begin) -> None:
    later, due = at(begin, Role.LANG, 0), at(begin, Role.LANG, 5)
    Step.objects.filter(envelope=later).update(available_at=F("available_at") + timedelta(hours=1))
    assert order(Role.LANG) == ids([due])


def test_a_worker_does_what_is_next_whichever_step_the_bell_rang_for(begin: Begin) -> None:
    second, only = at(begin, Role.LANG, 1), at(begin, Role.LANG, 0)
    done: list[UUID] = []

    def work(step: Claim) -> Conclusion:
        done.append(step.envelope_id)
        return Conclusion(Result({"language": "en"}))

    events.connection().delete(Role.LANG.queue)
    ring(second.pk, 2, Role.LANG)
    perform_one_by_one(Role.LANG, work)
    assert done == ids([only, second])


def test_the_manager_serves_in_the_same_order(begin: Begin) -> None:
    second, only = begin(), begin()
    Step.objects.filter(envelope=second).update(place=1)
    decided: list[UUID] = []

    def work(step: Claim) -> Conclusion:
        decided.append(step.envelope_id)
        return route(step)

    assert ids([only]) == [step.envelope_id for step in claim_ready(Role.MANAGER, 1)]
    perform_in_batches(Role.MANAGER, work)
    assert decided == ids([second])
