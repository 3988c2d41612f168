"""Scripted analysis: an act, a policy, and a model that compares them, in English and in Czech."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from assistant.lab.model_server import Call, Response
from assistant.lab.scripted_tools import asks, want

TOLD = re.compile(r"\[(p[0-9a-f]{8})\] ([^\n]*?)(?: \(document [^\n]*\))?\n")
MARKED = re.compile(r'marker="(C\d+)">\n([^\n]*)\n')
STEPS = [["extractor"], ["requirement_extractor", "classifier"], ["compliance", "risk_verifier"]]
Reply = Callable[[Call], Response | dict[str, Any]]


@dataclass(frozen=True)
class Rule:
    """One duty of the act, and what the policy says to it."""

    section: str  # of the act
    text: str
    verdict: str
    practice: str = ""  # the section of the policy; empty: there is none
    words: str = ""


@dataclass(frozen=True)
class Case:
    """One comparison: what is asked, and what the documents hold."""

    language: str
    question: str
    act: str
    policy: str
    rules: tuple[Rule, ...]

    def pages(self) -> dict[str, str]:
        """Return the documents as Markdown, by file name."""
        policy = {rule.practice: rule.words for rule in self.rules if rule.practice}
        act = {rule.section: rule.text for rule in self.rules}
        return {
            f"{title}.md": f"# {title}\n\n"
            + "\n\n".join(f"## {section}\n\n{text}" for section, text in sections.items())
            for title, sections in ((self.act, act), (self.policy, policy))
        }


ENGLISH = Case(
    "en",
    "Does our data policy comply with the archive act?",
    "Archive act",
    "Data policy",
    (
        Rule(
            "Keeping invoices",
            "The operator must keep every invoice for ten years.",
            "violation",
            "Deletion of invoices",
            "Invoices are deleted after six years.",
        ),
        Rule(
            "Register of deletions",
            "The operator must keep a register of all deletions.",
            "compliant",
            "Log of deletions",
            "The Privacy Office enters every deletion in a register.",
        ),
        Rule("Archive officer", "The operator must name an archive officer.", "gap"),
    ),
)
CZECH = Case(
    "cs",
    "Zkontroluj soulad provozní dokumentace s vyhláškou o archivaci.",
    "Vyhláška o archivaci",
    "Provozní dokumentace",
    (
        Rule(
            "Uchovávání faktur",
            "Provozovatel musí uchovávat každou fakturu deset let.",
            "violation",
            "Mazání faktur",
            "Faktury se mažou po šesti letech.",
        ),
        Rule(
            "Evidence výmazů",
            "Provozovatel musí vést evidenci všech výmazů.",
            "compliant",
            "Záznamy o výmazech",
            "Úřad pro ochranu údajů zapisuje každý výmaz do evidence.",
        ),
        Rule("Archivář", "Provozovatel musí jmenovat archiváře.", "gap"),
    ),
)


def known(call: Call) -> dict[str, str]:
    """Return the ids of the passages that a model was told of, by "title > section"."""
    told = "\n".join(str(each["content"]) for each in call.body["messages"])
    return {place: name for name, place in TOLD.findall(told)}


def rounds(call: Call) -> int:
    """Return in how many rounds tools were called."""
    return sum(bool(each.get("tool_calls")) for each in call.body["messages"])


def replies(case: Case, steps: list[list[str]] | None = None) -> dict[str, Reply]:
    """Return what the model says, by prompt; every other prompt is for who has sensible replies."""
    analyst = Analyst(case)
    plan = STEPS if steps is None else steps
    return {
        "translation": lambda _: {"text_eng": case.question},
        "essence": lambda _: {"canonical_question": case.question, "context_type": "new_topic"},
        "router": lambda _: {"route": "analysis", "confidence": 0.95},
        "orchestrator": lambda _: Response(json.dumps(analyst.plan(plan))),
        "synthesis": analyst.synthesis,
        **{role: analyst.specialist(role) for role in GIVES},
    }


@dataclass(frozen=True)
class Analyst:
    """What each role's model says of one case."""

    case: Case

    def plan(self, steps: list[list[str]]) -> dict[str, Any]:
        """Return the plan."""
        return {
            "thought": "Asks whether a policy meets an act.",
            "complexity_score": 75,
            "query_type": "compliance",
            "vagueness_score": 0.1,
            "is_follow_up": False,
            "question": self.case.question,
            "needs_clarification": False,
            "clarifying_questions": [],
            "steps": steps,
        }

    def specialist(self, role: str) -> Reply:
        """Return what a specialist says: it calls its tools once, and then gives its shape."""
        tools, give = GIVES[role]

        def reply(call: Call) -> Response:
            if tools and not rounds(call):
                calls = [
                    want(name, number, **arguments)
                    for number, (name, arguments) in enumerate(tools(self.case), start=1)
                ]
                return asks(*calls, text="I look for what both say.")
            return Response(json.dumps(give(self.case, known(call)), ensure_ascii=False))

        return reply

    def synthesis(self, call: Call) -> Response:
        """Return the answer: what act and policy say, with the markers of both."""
        marks = {place: marker for marker, place in MARKED.findall(call.user)}
        lines = []
        for rule in self.case.rules:
            words = [(f"{self.case.act} > {rule.section}", rule.text)]
            if rule.practice:
                words.append((f"{self.case.policy} > {rule.practice}", rule.words))
            lines.append(
                "- " + " ".join(f"{said} [{marks[at]}]" for at, said in words if at in marks)
            )
        return Response(
            json.dumps({"more": [], "why": "", "answer": "\n".join(lines)}, ensure_ascii=False)
        )


Calls = list[tuple[str, dict[str, Any]]]
Given = dict[str, Any]


def _find(tool: str) -> Callable[[Case], Calls]:
    def calls(case: Case) -> Calls:
        shared = {"limit": 10, "document": ""}
        queries = [rule.text for rule in case.rules] + [r.words for r in case.rules if r.words]
        return [(tool, {"query": query} | shared) for query in queries[:5]]

    return calls


def _practice(case: Case, ids: Mapping[str, str], rule: Rule) -> list[str]:
    return [ids[at]] if (at := f"{case.policy} > {rule.practice}") in ids else []


def _duty(case: Case, ids: Mapping[str, str], rule: Rule) -> list[str]:
    return [ids[at]] if (at := f"{case.act} > {rule.section}") in ids else []


def _findings(case: Case, ids: Mapping[str, str]) -> Given:
    said = [(rule.text, _duty(case, ids, rule)) for rule in case.rules]
    said += [(rule.words, _practice(case, ids, rule)) for rule in case.rules if rule.practice]
    findings = [{"statement": words, "evidence": evidence} for words, evidence in said]
    # A passage that no tool gave.
    findings[0]["evidence"] = [*findings[0]["evidence"], "p00000000"]
    return {"summary": "What both say.", "findings": findings}


def _kinds(case: Case, ids: Mapping[str, str]) -> Given:
    shared = {"domain": "legal", "complexity": "low", "language": case.language}
    return {
        "summary": "A law and a policy.",
        "documents": [
            {"document": title, "type": kind, "sensitivity": "internal", "evidence": []} | shared
            for title, kind in ((case.act, "law"), (case.policy, "policy"))
        ],
    }


def _checklist(case: Case, ids: Mapping[str, str]) -> Given:
    return {
        "summary": "Three duties.",
        "target": case.act,
        "requirements": [
            {
                "id": f"REQ-{number:03d}",
                "requirement": rule.text,
                "source_section": rule.section,
                "severity": "mandatory",
                "applicability": "operator",
                "target": case.act,
                "evidence": _duty(case, ids, rule),
            }
            for number, rule in enumerate(case.rules, start=1)
        ],
    }


def _verdicts(case: Case, ids: Mapping[str, str]) -> Given:
    return {
        "summary": "One duty is met.",
        "verdicts": [
            {
                "requirement_id": f"REQ-{number:03d}",
                "verdict": rule.verdict,
                "explanation": "As the policy says." if rule.practice else "Nothing says it.",
                "confidence": 0.9,
                "evidence": _practice(case, ids, rule),
            }
            for number, rule in enumerate(case.rules, start=1)
        ],
        "clashes": [],
    }


def _risks(case: Case, ids: Mapping[str, str]) -> Given:
    risk = {
        "kind": "legal",
        "risk": "Invoices are missing.",
        "severity": "high",
        "likelihood": "likely",
        "mitigation": "Keep them for ten years.",
        "evidence": _practice(case, ids, case.rules[0]),
    }
    return {"summary": "One risk.", "risks": [risk]}


def _audit(case: Case, ids: Mapping[str, str]) -> Given:
    return {"summary": "Nothing is cited.", "citations": []}


def _gaps(case: Case, ids: Mapping[str, str]) -> Given:
    gap = {"kind": "regulatory", "gap": "No officer is named.", "severity": "medium"}
    return {"summary": "One gap.", "gaps": [gap | {"evidence": _duty(case, ids, case.rules[-1])}]}


Gives = tuple[Callable[[Case], Calls] | None, Callable[[Case, Mapping[str, str]], Given]]
# For each specialist the tools that it calls, and what it gives then.
GIVES: Mapping[str, Gives] = {
    "extractor": (_find("search"), _findings),
    "classifier": (None, _kinds),
    "requirement_extractor": (_find("hierarchical_search"), _checklist),
    "compliance": (None, _verdicts),
    "risk_verifier": (_find("similarity_search"), _risks),
    "citation_auditor": (_find("search"), _audit),
    "gap_synthesizer": (_find("hierarchical_search"), _gaps),
}
