"""Search: what it finds and why, level by level, in the documents that a key reaches."""

from dataclasses import asdict, replace
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from knowledge.api.access import may, reach_of
from knowledge.api.sent import LanguageTag, Question, Sent
from knowledge.collections import Reach
from knowledge.identifiers import Scope
from knowledge.search import SearchResult, Surroundings, neighbours, search
from knowledge.search.vector import ONLY_WORDS

RESULTS_LIMIT = 50
NEIGHBOURS_LIMIT = 5


class SearchQuery(Sent):
    """What may stand behind `?` of a search."""

    q = Question(help_text="The question.")
    collection = serializers.ListField(
        child=serializers.CharField(max_length=63, allow_blank=True),
        default=list,
        max_length=50,
        help_text="Where to look; may be repeated. Left out: everywhere that your key reaches.",
    )
    language = LanguageTag(
        default="", allow_blank=True, help_text="Only documents in this language."
    )
    audience = serializers.CharField(
        max_length=100, default="", allow_blank=True, help_text="Only documents for this audience."
    )
    limit = serializers.IntegerField(
        min_value=1, max_value=RESULTS_LIMIT, required=False, help_text="Passages at most."
    )
    explain = serializers.BooleanField(
        default=False, help_text="Whether to add every candidate with its ranks, and why it fell."
    )
    neighbours = serializers.IntegerField(
        min_value=0,
        max_value=NEIGHBOURS_LIMIT,
        default=0,
        help_text="How many of the chunks before and after each passage to add.",
    )

    def validate_q(self, question: str) -> str:
        """Refuse what is blank, or longer than a question may be."""
        if not question.strip():
            raise serializers.ValidationError("This field may not be blank.")
        limit = settings.MAX_QUESTION_LENGTH
        if len(question) > limit:
            raise serializers.ValidationError(f"The question has at most {limit:,} characters.")
        return question

    def validate_collection(self, names: list[str]) -> list[str]:
        """Leave out what is empty, as a form sends it."""
        return [name for name in names if name]


class PassageSerializer(serializers.Serializer[Any]):
    """A chunk that was found."""

    chunk_id = serializers.IntegerField()
    document_id = serializers.CharField()
    version = serializers.IntegerField()
    edition = serializers.CharField(help_text="The document's own version, as it names it.")
    title = serializers.CharField()
    section = serializers.CharField(help_text="Headings above it, joined by >.")
    crumbs = serializers.ListField(child=serializers.CharField())
    source = serializers.CharField()  # type: ignore[assignment]  # a field of that name
    language = serializers.CharField()
    page = serializers.IntegerField(allow_null=True)
    text = serializers.CharField()
    score = serializers.FloatField(help_text="Fused, comparable within one search only.")
    cosine = serializers.FloatField(allow_null=True, help_text="Similarity to the question.")
    before = serializers.ListField(
        child=serializers.CharField(), help_text="Texts that stand before it, with `neighbours`."
    )
    after = serializers.ListField(
        child=serializers.CharField(), help_text="Texts that stand after it, with `neighbours`."
    )


class StandingSerializer(serializers.Serializer[Any]):
    """Where one level put a candidate for one wording."""

    level = serializers.CharField()
    wording = serializers.IntegerField(help_text="Place in `wordings`, from 0.")
    rank = serializers.IntegerField()
    score = serializers.FloatField(help_text="Comparable within the level only.")


class CandidateSerializer(serializers.Serializer[Any]):
    """A chunk that some level named, and what became of it."""

    chunk_id = serializers.IntegerField()
    document_id = serializers.CharField()
    title = serializers.CharField()
    section = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # a field of that name
    text = serializers.CharField()
    standings = StandingSerializer(many=True)
    score = serializers.FloatField()
    cosine = serializers.FloatField(allow_null=True)
    alignment = serializers.FloatField(
        allow_null=True,
        help_text="How well one place of it speaks of everything asked, -1 to 1; "
        "null where its tokens were not read.",
    )
    place = serializers.IntegerField(allow_null=True, help_text="In the results; null if none.")
    dropped = serializers.CharField(allow_null=True)
    by = serializers.IntegerField(allow_null=True, help_text="The chunk that was preferred.")
    why = serializers.CharField(allow_blank=True, help_text="Why it was dropped, in words.")


class WordingSerializer(serializers.Serializer[Any]):
    """A text that was searched for."""

    text = serializers.CharField()
    kind = serializers.CharField()
    weight = serializers.FloatField()


class ExplanationSerializer(serializers.Serializer[Any]):
    """Everything one search considered, best first."""

    wordings = WordingSerializer(many=True)
    weights = serializers.DictField(child=serializers.FloatField(), help_text="Of each level.")
    candidates = CandidateSerializer(many=True)


class SearchAnswer(serializers.Serializer[Any]):
    """The passages of a search, and how far they can be trusted."""

    passages = PassageSerializer(many=True)
    quality = serializers.CharField(help_text="excellent, good or poor.")
    no_context = serializers.BooleanField(help_text="Whether nothing found can carry an answer.")
    error = serializers.CharField(allow_blank=True, help_text="Why a level was left out.")
    stats = serializers.DictField()
    explain = ExplanationSerializer(allow_null=True)


class SearchView(APIView):
    """A search without an answer."""

    scope = Scope.CHAT

    @extend_schema(operation_id="search", parameters=[SearchQuery], responses=SearchAnswer)
    def get(self, request: Request) -> Response:
        """Return the passages for a question, with `explain` also what was dropped and why."""
        query = SearchQuery.read(request.query_params)
        asked = query | within_reach(reach_of(request), query)
        result = run_search(asked, reuse=f"user:{request.user.pk}/")
        if not may(request, Scope.DOCUMENTS):
            result = _without_servers(result)
        distance = query["neighbours"]
        surroundings = neighbours(
            (passage.chunk_id for passage in result.passages if distance), distance=distance
        )
        return Response(
            {
                "passages": [
                    asdict(passage) | asdict(surroundings.get(passage.chunk_id, Surroundings()))
                    for passage in result.passages
                ],
                "quality": result.quality,
                "no_context": result.no_context,
                "error": result.error,
                "stats": result.stats,
                "explain": result.explain and result.explain.as_json(),
            }
        )


def _without_servers(result: SearchResult) -> SearchResult:
    """Leave out why models could not be asked, which tells where they are."""
    stats = {name: value for name, value in result.stats.items() if name != "expansion"}
    return replace(result, error=result.error and ONLY_WORDS, stats=stats)


def within_reach(reach: Reach, query: dict[str, Any]) -> dict[str, Any]:
    """Return the collections and the audience that a key may be answered from.

    Raises UnknownCollection for one that it does not reach, and ValidationError for an audience.
    """
    reach.check(query["collection"])
    collections = query["collection"] or list(reach.collections or ())
    if reach.collections == ():
        raise NotFound("There is no document that your key reaches.")
    if reach.audience and query["audience"] not in {"", reach.audience}:
        raise ValidationError({"audience": ["Your key reaches documents for another audience."]})
    return {"collection": collections, "audience": reach.audience or query["audience"]}


def run_search(query: dict[str, Any], *, reuse: str = "") -> SearchResult:
    """Return what a validated query finds (`reuse` as in `search`). Raises UnknownCollection."""
    return search(
        query["q"],
        collections=query["collection"],
        limit=query.get("limit"),
        languages=[query["language"]] if query["language"] else (),
        audience=query["audience"],
        explain=query["explain"],
        reuse=reuse,
    )
