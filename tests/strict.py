"""Strict: a model server that takes less than OpenAI's and says more, as those of one's own do."""

import json
import re
from dataclasses import replace

from assistant.lab.model_server import Call, Response
from assistant.lab.scripted_replies import sensible

KNOWN = {"model", "messages", "max_tokens"}
SPELLED = re.compile(r"JSON schema.*?^(\{.*\})$", re.DOTALL | re.MULTILINE)


def strict(asked: Call) -> Response:
    """No unknown parameter, no stream, no JSON schema, no usage; fields of its own everywhere."""
    if unknown := sorted(set(asked.body) - KNOWN):
        told = [{"type": "extra_forbidden", "loc": ["body", unknown[0]], "input": asked.body}]
        return Response(status=422, body=json.dumps({"detail": told}))
    spelled = SPELLED.search(asked.system)
    text = _shaped(asked, spelled[1]) if spelled else str(sensible(asked))
    return Response(
        text,
        finish="" if spelled else "eos",
        usage=False,
        extra={"system_fingerprint": None, "timings": {"ms": 1.5}, "reasoning": "hm"},
    )


def _shaped(asked: Call, schema: str) -> str:
    told = {"response_format": {"json_schema": {"schema": json.loads(schema)}}}
    reply = sensible(replace(asked, body=asked.body | told))
    return f"Here you are:\n\n```json\n{json.dumps(reply, ensure_ascii=False)}\n```\n"
