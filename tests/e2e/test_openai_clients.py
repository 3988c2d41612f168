"""Clients that were made for OpenAI's API ask a running Docent: its package, pages, llm, curl."""

import json
import os
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
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
# What chat pages ask the same model for beside the chat, in words of their kind.
TASKS: dict[str, dict[str, Any]] = {
    "title of LibreChat": {
        "content": "Provide a concise title of at most five words for the conversation, and "
        f"return it alone.\n\nConversation:\nUser: {DESCALE}\nAI: With citric acid.",
        "temperature": 0.2,
        "max_tokens": 16,
        "stream": False,
    },
    "tags of Open WebUI": {
        "content": "### Task:\nGenerate some broad tags for the themes of the chat history.\n"
        '### Output:\nJSON format: {"tags": ["tag"]}\n### Chat History:\n<chat_history>\n'
        f"USER: {DESCALE}\nASSISTANT: With citric acid.\n</chat_history>",
        "max_completion_tokens": 1000,
        "stream": False,
        "metadata": {"task": "tags_generation", "chat_id": "5e7f"},
    },
    "further questions of Open WebUI": {
        "content": "### Task:\nSuggest relevant follow-up questions that the user might ask.\n"
        '### Output:\nJSON format: {"follow_ups": ["Question?"]}\n### Chat History:\n'
        f"<chat_history>\nUSER: {DESCALE}\nASSISTANT: With citric acid.\n</chat_history>",
        "stream": False,
        "chat_id": "5e7f",
        "features": {"web_search": False},
    },
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

    def ask_aside(self, content: str, **how: Any) -> dict[str, Any]:
        """Ask what the user does not see; return the answer, which is no stream."""
        messages = [{"role": "user", "content": content}]
        body = json.dumps({"model": "teapot", "messages": messages} | how)
        answer = self.docent.send("POST", "/v1/chat/completions", body, self.headers)
        assert answer.status == 200, answer.body
        whole: dict[str, Any] = answer.body
        return whole

    def stop(self, text: str) -> str:
        """Leave while an answer is on its way, as with the button; return what was told."""
        self.said.append({"role": "user", "content": text})
        body = json.dumps({"model": "teapot", "messages": self.said} | self.usual)
        connection = HTTPConnection("127.0.0.1", self.docent.port, timeout=60)
        connection.request("POST", "/v1/chat/completions", body=body, headers=self.headers)
        first = connection.getresponse().readline().decode()
        connection.close()
        self.said.append({"role": "assistant", "content": ""})
        return first

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


def test_a_chat_page_goes_on_after_asking_aside_and_after_a_stop(
    docent: Docent, client: openai.OpenAI
) -> None:
    page = Page(docent, client, **LIBRECHAT)
    *_, asked_back, _ = page.say("How do I set it up?")
    for task in TASKS.values():
        aside = page.ask_aside(**task)
        assert aside["choices"][0]["message"]["content"]
        assert aside["conversation_id"] != asked_back["conversation_id"]
        assert aside["metadata"] == task.get("metadata")
    *_, answered, _ = page.say("the WordPress plugin")
    assert answered["conversation_id"] == asked_back["conversation_id"]
    assert json.loads(page.stop(DESCALE).removeprefix("data: "))["choices"][0]["delta"]["role"]
    assert "citric acid" in told(page.say(DESCALE))


def test_the_command_llm_is_answered_whole_in_pieces_and_goes_on(
    docent: Docent, client: openai.OpenAI, tmp_path: Path
) -> None:
    model = {"model_id": "docent", "model_name": "teapot", "api_key_name": "docent"}
    address = {"api_base": f"http://127.0.0.1:{docent.port}/v1"}
    (tmp_path / "extra-openai-models.yaml").write_text(json.dumps([model | address]))
    (tmp_path / "keys.json").write_text(json.dumps({"docent": client.api_key}))

    def llm(*words: str) -> str:
        called = [str(Path(sys.executable).with_name("llm")), "-m", "docent", *words]
        environment = os.environ | {"LLM_USER_PATH": str(tmp_path)}
        done = subprocess.run(called, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "WordPress plugin" in llm("--no-stream", "How do I set it up?")
    assert "teapot.zip" in llm("--continue", "the WordPress plugin")


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
