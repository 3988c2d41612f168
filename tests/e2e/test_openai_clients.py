"""Clients that were made for OpenAI ask a running Docent: its own package, chat pages, and curl."""

import json
import subprocess
from typing import Any

import openai
import pytest

from tests.e2e.conftest import Docent, new_key

DESCALE = "How do I descale the heater?"
# Of Open WebUI 0.6 and of LibreChat 0.8, beside the question.
OPEN_WEBUI = {"stream": True, "stream_options": {"include_usage": True}}
LIBRECHAT = {
    "temperature": 1,
    "top_p": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "user": "6650f1b2c3d4e5f6a7b8c9d0",
    **OPEN_WEBUI,
}


@pytest.fixture(scope="module")
def client(docent: Docent) -> openai.OpenAI:
    """OpenAI's own package, with a key of its own."""
    key = new_key(docent, "openai-clients")
    return openai.OpenAI(base_url=f"http://127.0.0.1:{docent.port}/v1", api_key=key, max_retries=0)


class Page:
    """A chat page: it lists models, and sends the whole chat with every message."""

    def __init__(self, docent: Docent, client: openai.OpenAI, **usual: Any) -> None:
        self.docent, self.usual = docent, usual
        self.headers = {
            "Authorization": f"Bearer {client.api_key}",
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            "X-OpenWebUI-User-Id": "ann",
        }
        self.said: list[dict[str, str]] = []

    def models(self) -> list[str]:
        """Return the names to choose from."""
        listed = self.docent.send("GET", "/v1/models?user=ann", None, self.headers).body
        return [each["id"] for each in listed["data"]]

    def say(self, text: str) -> list[dict[str, Any]]:
        """Return the data of the events that answer."""
        self.said.append({"role": "user", "content": text})
        body = json.dumps({"model": "teapot", "messages": self.said} | self.usual)
        answer = self.docent.send("POST", "/v1/chat/completions", body, self.headers)
        assert answer.status == 200, answer.body
        lines = [line for line in answer.body.splitlines() if line.startswith("data: ")]
        assert lines[-1] == "data: [DONE]"
        events = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
        self.said.append({"role": "assistant", "content": told(events)})
        return events


def told(events: list[dict[str, Any]]) -> str:
    deltas = [choice["delta"] for each in events for choice in each["choices"]]
    return "".join(delta.get("content", "") for delta in deltas)


def test_the_package_of_openai_is_answered_with_citations(client: openai.OpenAI) -> None:
    assert "teapot" in [each.id for each in client.models.list()]
    asked: Any = {"model": "teapot", "messages": [{"role": "user", "content": DESCALE}]}
    whole = client.chat.completions.create(**asked)
    message = whole.choices[0].message
    text = str(message.content)
    assert "citric acid" in text
    assert message.annotations
    for annotation in message.annotations:
        place = annotation.url_citation
        assert text[place.start_index : place.end_index].startswith("[C")
        assert place.title.startswith("Cleaning and descaling")
        assert place.url.endswith("cleaning.md")
    assert "cleaning.md" in text.splitlines()[-1]
    with client.chat.completions.stream(**asked) as stream:
        streamed = stream.get_final_completion().choices[0].message
    assert streamed.content == text


def test_the_package_of_openai_gets_vectors(client: openai.OpenAI) -> None:
    (vector,) = client.embeddings.create(model="teapot", input=DESCALE).data
    assert len(vector.embedding) == 384


@pytest.mark.parametrize("usual", [OPEN_WEBUI, LIBRECHAT], ids=["Open WebUI", "LibreChat"])
def test_a_chat_page_is_asked_back_and_then_answered(
    docent: Docent, client: openai.OpenAI, usual: dict[str, Any]
) -> None:
    page = Page(docent, client, **usual)
    assert "teapot" in page.models()
    asked_back = page.say("How do I set it up?")
    assert "WordPress plugin" in told(asked_back)
    assert asked_back[-2]["docent"]["status"] == "awaiting_user"
    *_, noted, ended, used = page.say("the WordPress plugin")
    assert "teapot.zip" in page.said[-1]["content"]
    assert noted["choices"][0]["delta"]["annotations"]
    assert ended["conversation_id"] == asked_back[-2]["conversation_id"]
    assert used["usage"].keys() == {"prompt_tokens", "completion_tokens", "total_tokens"}


def test_curl_is_answered_and_told_what_is_wrong(docent: Docent, client: openai.OpenAI) -> None:
    def curl(**body: Any) -> Any:
        address = f"http://127.0.0.1:{docent.port}/v1/chat/completions"
        sent = ("-H", "Content-Type: application/json", "-d", json.dumps(body))
        key = ("-H", f"Authorization: Bearer {client.api_key}")
        called = ["curl", "-s", address, *key, *sent]
        return json.loads(subprocess.run(called, capture_output=True, check=True).stdout)

    messages = [{"role": "user", "content": DESCALE}]
    answer = curl(model="teapot", messages=messages)
    assert "citric acid" in answer["choices"][0]["message"]["content"]
    assert curl(model="nobody", messages=messages)["error"]["code"] == "model_not_found"
