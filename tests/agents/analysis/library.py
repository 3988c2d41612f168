"""Library: two agreements and a handbook, with real vectors, and who looks into them."""

import uuid
from functools import cache
from typing import Any

import numpy as np
from django.utils.timezone import now

from agents.models import Envelope, ToolRun
from agents.names import Role
from agents.tools.tool import TOOLS, Caller, Finding, ToolOutcome
from knowledge.embedding import Vectors, encode
from knowledge.models import Document
from tests.knowledge.levels import page

OLD = {
    "Definitions": "\u201cRoyalty\u201d means the share of the price owed to the author.",
    "Payment": "The press shall pay the royalty within 30 days after the end of each quarter.",
    "Proofs": "The author must return the corrected proofs within two weeks.",
}
NEW = {
    "Definitions": "\u201cRoyalty\u201d means ten per cent of the net price of every copy sold.",
    "Payment": "The press pays royalties twice a year, in January and in July.",
    "Audio": "The press may have the book read aloud and sell the recording.",
}
COFFEE = {"Kitchen": "The coffee machine is descaled on Mondays."}


@cache
def vector(text: str) -> Vectors:
    """Return the vector of a text, made once."""
    (made,) = encode([text])
    return np.asarray(made)


def document(name: str, sections: dict[str, str], **fields: Any) -> Document:
    """Return a stored document with a chunk per section."""
    chunks = [(text, vector(f"{name} {section} {text}")) for section, text in sections.items()]
    paths = [[section] for section in sections]
    return page(f"{name}.md", *chunks, sections=paths, title=name, **fields)


def shelve() -> tuple[Document, Document]:
    """Return the two agreements, of the collection `contracts`; staff alone may see the coffee."""
    old = document("Old agreement", OLD, collection="contracts")
    new = document("New agreement", NEW, collection="contracts")
    document("Kitchen rules", COFFEE, collection="contracts", audience="staff")
    document("House rules", COFFEE, collection="house")
    return old, new


def caller(**fields: Any) -> Caller:
    """Return somebody who may look into the contracts."""
    return Caller(**{"role": Role.EXTRACTOR, "collections": ("contracts",), **fields})


def turn() -> str:
    """Return the id of a turn in which tools can be called."""
    ids = {"conversation_id": uuid.uuid4(), "message_id": uuid.uuid4()}
    return str(Envelope.objects.create(deadline=now(), **ids).pk)


def use(tool: str, who: Caller, **arguments: Any) -> Any:
    """Return what a tool gives, and note it in the turn, if there is one, as the journal does."""
    declared = TOOLS[tool]
    result = declared.function(declared.arguments(**arguments), who)
    value = result.value if isinstance(result, Finding) else result
    if who.turn_id:
        number = ToolRun.objects.count()
        ToolRun.objects.create(
            envelope_id=who.turn_id, step_number=1, number=number, role=who.role, tool=tool,
            outcome=ToolOutcome.OK, result=value, key=f"{number}",
        )  # fmt: skip
    return result


def sections(finding: Any) -> list[str]:
    """Return where the passages of a result stand."""
    return [f"{each['title']} > {each['section']}" for each in finding.value["passages"]]
