"""A provider's server: answers what an embedding endpoint would, and notes what it was asked."""

import json
from collections.abc import Callable
from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response


class Server:
    """Answers every text with the vector that `vector` makes of it."""

    def __init__(self, http: HTTPServer, vector: Callable[[str], list[float]]) -> None:
        self.vector = vector
        self.bodies: list[dict[str, Any]] = []
        self.change: Callable[[dict[str, Any]], None] = lambda answer: None
        self.before: list[Response] = []  # answered first, one by one
        http.expect_request("/v1/embeddings", method="POST").respond_with_handler(self.answer)

    def answer(self, request: Request) -> Response:
        body = json.loads(request.get_data())
        self.bodies.append(body)
        if self.before:
            return self.before.pop(0)
        answer = {
            "object": "list",
            "data": [
                {"object": "embedding", "index": place, "embedding": self.vector(text)}
                for place, text in enumerate(body["input"])
            ],
            "usage": {"prompt_tokens": 7, "total_tokens": 7},
        }
        self.change(answer)
        return Response(json.dumps(answer), content_type="application/json")

    @property
    def texts(self) -> list[str]:
        """What it was asked for, in order."""
        return [text for body in self.bodies for text in body["input"]]
