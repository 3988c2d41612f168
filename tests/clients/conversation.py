"""One conversation through a generated client: asked back, answered, read again."""

import json
import sys

from docent_client import AuthenticatedClient
from docent_client.api.chat import ask
from docent_client.api.documents import list_documents
from docent_client.api.search import search
from docent_client.api.turns import read_turn
from docent_client.models import ChatRequest, PaginatedDocumentList, Refusal, Reply


def converse(client: AuthenticatedClient) -> dict[str, object]:
    """Return what was told, part by part."""

    def said(message: str) -> Reply:
        body = ChatRequest(message=message, session_id="python", collections=["teapot"])
        answer = ask.sync(client=client, body=body)
        assert isinstance(answer, Reply), answer
        return answer

    asked_back = said("How do I set it up?")
    answered = said("the WordPress plugin")
    again = read_turn.sync(answered.turn_id, client=client)
    documents = list_documents.sync(client=client, collection="teapot")
    refused = search.sync(client=client, q="teapot", collection=["nowhere"])
    assert isinstance(again, Reply)
    assert isinstance(documents, PaginatedDocumentList)
    assert isinstance(refused, Refusal)
    return {
        "statuses": [asked_back.status, answered.status],
        "reply": answered.reply,
        "citations": [citation.source for citation in answered.citations],
        "same": again.reply == answered.reply,
        "documents": [document.title for document in documents.results],
        "refusal": refused.code,
    }


if __name__ == "__main__":
    address, key = sys.argv[1:]
    with AuthenticatedClient(address, key, raise_on_unexpected_status=True) as client:
        sys.stdout.write(json.dumps(converse(client)))
