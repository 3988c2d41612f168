"""A turn's place in its user's line: how many turns of that user were under way when it began."""

import pytest
from django.contrib.auth.models import User

from agents import envelopes
from conversations.services import Asker, ask

pytestmark = pytest.mark.usefixtures("listening")


def place(owner: User | None) -> int:
    return ask("Do unused days end?", Asker(owner)).steps.get().place


def test_every_user_has_a_line_of_their_own(db: None) -> None:
    ann, bob = User.objects.create_user("ann"), User.objects.create_user("bob")
    assert [place(owner) for owner in (ann, ann, ann, bob, None, None)] == [0, 1, 2, 0, 0, 1]


def test_a_turn_that_has_ended_is_not_counted(db: None) -> None:
    ann = User.objects.create_user("ann")
    envelopes.cancel(ask("Do unused days end?", Asker(ann)).pk)
    assert place(ann) == 0
