"""The vectors by which documents are found, for clients of OpenAI's API."""

import numpy as np
import openai
import pytest
from django.contrib.auth.models import User

from conversations.models import Assistant
from conversations.openai_models import EVERYTHING
from knowledge.embedding import registry
from knowledge.embedding.local import MODEL
from knowledge.models import Collection
from tests import factories
from tests.conversations.conftest import OpenAIFor

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = ["Unused days end in March.", "Ungenutzte Tage verfallen im März."]


@pytest.fixture
def ask(openai_for: OpenAIFor, clerk: User) -> openai.OpenAI:
    factories.collection()
    return openai_for(clerk)


@pytest.mark.parametrize("model", ["handbook", EVERYTHING, MODEL])
def test_texts_get_the_vectors_of_the_collection(ask: openai.OpenAI, model: str) -> None:
    # The client asks for base64 unless told otherwise.
    answer = ask.embeddings.create(model=model, input=TEXTS)
    numbers = ask.embeddings.create(model=model, input=TEXTS[1], encoding_format="float")
    expected = registry.default().encode(TEXTS)
    assert np.array_equal(np.array([each.embedding for each in answer.data], "f4"), expected)
    assert np.allclose(numbers.data[0].embedding, expected[1])
    assert answer.model == MODEL
    assert [each.index for each in answer.data] == [0, 1]
    assert answer.usage.prompt_tokens > 10


def test_a_bound_key_has_the_models_of_its_collections_alone(
    openai_for: OpenAIFor, ask: openai.OpenAI, clerk: User
) -> None:
    loans = factories.collection("loans")
    bank = Assistant.objects.create(name="bank", collections=["loans"])
    Collection.objects.filter(pk=loans.pk).update(embedding_model="large@acme")
    bound = openai_for(clerk, bank)
    for name in (MODEL, "handbook", EVERYTHING):
        with pytest.raises(openai.NotFoundError) as caught:
            bound.embeddings.create(model=name, input="a")
        assert "acme" not in caught.value.message
    with pytest.raises(openai.NotFoundError, match="several embedding models"):
        ask.embeddings.create(model=EVERYTHING, input="a")


@pytest.mark.parametrize("model", ["large@ollama", "large@gone"])
def test_a_model_that_does_not_answer_is_told_without_its_address(
    ask: openai.OpenAI, model: str
) -> None:
    Collection.objects.update(embedding_model=model)
    with pytest.raises(openai.InternalServerError) as caught:
        ask.embeddings.create(model="handbook", input="a")
    assert caught.value.status_code == 503
    assert caught.value.message.endswith("does not answer. Try again in a moment.")


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": ["a", ""]}, "input[1]"),
        ({"input": [1, 2]}, "input[0]"),
        ({"input": ["a"] * 65}, "input"),
        ({"input": "a" * 20_001}, "input"),
        ({"input": "a\0"}, "input"),
        ({"dimensions": 7}, "dimensions"),
        ({"encoding_format": "hex"}, "encoding_format"),
    ],
)
def test_what_has_no_vector_is_refused(
    ask: openai.OpenAI, more: dict[str, object], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        ask.post("/embeddings", body={"model": "handbook", "input": "a"} | more, cast_to=object)
    assert caught.value.param == param
