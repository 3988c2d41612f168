"""Graph: entities and relations that documents state, to be read."""

from datetime import date
from typing import Any

from django.contrib import admin
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from unfold.decorators import display

from knowledge.admin.graph_picture import picture
from knowledge.admin.search_box import chunk_link
from knowledge.collections import count
from knowledge.models import Entity, EntityName, Relation
from knowledge.read_only_admin import RecordAdmin

# More would keep the browser busy; the list of relations has all of them, and can be searched.
RELATIONS_SHOWN = 200
NAMES_SHOWN = 200
LATEST_FIRST = (F("valid_from").desc(nulls_last=True), "-pk")


@admin.register(Entity)
class EntityAdmin(RecordAdmin):
    """Entities: what documents call them, and what they say of them."""

    record_template = "knowledge/entity.html"
    list_display = ("name", "kind", "collection", "documents", "relations")
    list_filter = (("collection", admin.RelatedOnlyFieldListFilter), "kind")
    list_select_related = ("collection",)
    search_fields = ("name", "names__name")
    search_help_text = "A name, or another by which a document calls it"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Entity]:
        """Entities with the number of documents that name them and of relations they are in."""
        entities: QuerySet[Entity] = super().get_queryset(request)
        return entities.annotate(
            document_count=count(EntityName, "entity", of="document"),
            relation_count=count(Relation, "subject") + count(Relation, "object"),
        )

    def record(self, row: Any) -> dict[str, Any]:
        """Return the entity with its names and relations, those that began last first."""
        names = row.names.select_related("document").defer("document__content")
        relations = list(relations_matching(Q(subject=row) | Q(object=row))[:RELATIONS_SHOWN])
        return {
            "row": row,
            "picture": picture(row, relations, entity_address),
            "names": names.order_by("name", "document__title", "pk")[:NAMES_SHOWN],
            "relations": [
                {"row": each, "held": valid_time(each), "said": passage_link(each)}
                for each in relations
            ],
        }

    @display(description="Documents", ordering="document_count")
    def documents(self, entity: Any) -> int:
        """Number of documents that name it."""
        return int(entity.document_count)

    @display(description="Relations", ordering="relation_count")
    def relations(self, entity: Any) -> int:
        """Number of relations it is in."""
        return int(entity.relation_count)


@admin.register(Relation)
class RelationAdmin(RecordAdmin):
    """Relations: each with the time it holds, and the document that says so."""

    record_template = "knowledge/relation.html"
    list_display = ("subject", "predicate", "object", "time", "document", "collection")
    list_display_links = ("subject", "predicate")
    ordering = LATEST_FIRST
    list_filter = (("document__collection", admin.RelatedOnlyFieldListFilter),)
    search_fields = ("subject__name", "predicate", "object__name", "document__title")
    search_help_text = "Name of one of the two, predicate, or title of the document"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Relation]:
        """Relations with all they are shown with."""
        return relations_matching(Q())

    def record(self, row: Any) -> dict[str, Any]:
        """Return the relation with the passage that states it."""
        return {"row": row, "held": valid_time(row), "said": passage_link(row)}

    @display(description="Holds", ordering="valid_from")
    def time(self, relation: Relation) -> str:
        """From which day to which."""
        return valid_time(relation)

    @display(description="Collection", ordering="document__collection")
    def collection(self, relation: Relation) -> str:
        """That of the document."""
        return str(relation.document.collection)


def relations_matching(condition: Q) -> QuerySet[Relation]:
    """Return these relations, those that began last first, without the texts of their documents."""
    relations = Relation.objects.filter(condition).select_related(
        "subject", "object", "chunk", "document__collection"
    )
    return relations.defer("document__content", "document__summary").order_by(*LATEST_FIRST)


def valid_time(relation: Relation) -> str:
    """Return the time a relation holds, as the document has it."""
    match relation.valid_from, relation.valid_to:
        case date() as begin, date() as end:
            return f"{begin} to {end}"
        case date() as begin, None:
            return f"from {begin}"
        case None, date() as end:
            return f"until {end}"
    return "no time said"


def entity_address(entity: Entity) -> str:
    """Return the page of an entity."""
    return reverse("admin:knowledge_entity_change", args=[entity.pk])


def passage_link(relation: Relation) -> str:
    """Return where the passage is shown that states the relation."""
    return chunk_link(relation.document_id, relation.chunk.number)
