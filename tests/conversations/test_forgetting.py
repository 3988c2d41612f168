"""A conversation that is forgotten leaves nothing behind."""

from agents.models import Envelope, Fault, Step
from conversations.models import Conversation, Message
from conversations.services import forget
from knowledge.models import Reliance
from tests import factories


def test_forgetting_takes_messages_turns_steps_and_faults_along(db: None) -> None:
    talk = factories.conversation()
    factories.turn(talk, citations_used=[factories.CITATION])
    factories.failed_turn(talk, ValueError("broken"))
    assert Reliance.objects.count() == 1

    forget(talk)

    for kind in (Conversation, Message, Envelope, Step, Fault, Reliance):
        assert not kind._default_manager.exists()


def test_forgetting_one_conversation_keeps_the_others(db: None) -> None:
    talk, other = factories.conversation("a"), factories.conversation("b")
    factories.turn(talk)
    turn = factories.turn(other)

    forget(talk)

    assert Envelope.objects.get() == turn
    assert other.messages.count() == 2
