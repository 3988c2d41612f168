"""Assistants: what each of several in one deployment sets for itself."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db.models import CharField, DateTimeField, JSONField, Model

from agents.attributes import LANGUAGE, Persona
from agents.names import ENRICHMENT, MODEL_ASKERS, PROFILES
from agents.opening_hours import OpeningHours
from agents.words import english_name
from knowledge.models import Collection
from knowledge.models.documents import COLLECTION_NAME
from knowledge.postgres_text import is_storable
from knowledge.providers import parse_model_name

# Descriptions of documents belong to their collections, whichever assistant searches these.
ASKERS = tuple(asker for asker in MODEL_ASKERS if asker != ENRICHMENT)
SHARED_MODEL, NO_MODEL = "GEN_MODEL", "none"
MODEL_SETTINGS = (SHARED_MODEL, *(f"{asker.upper()}_MODEL" for asker in ASKERS))
STRICTNESSES = ("low", "medium", "high")
TEXTS = (
    "title",
    "domain_name",
    "domain_scope",
    "tone",
    "audience",
    "greeting",
    "contact",
)


def check_collections(names: Any) -> None:
    """Raise ValidationError for the name of a collection that does not exist."""
    known = Collection.objects.values_list("name", flat=True)
    _refuse_others("collection", names, known)


def check_routes(names: Any) -> None:
    """Raise ValidationError for a route that the deployment has not opened."""
    _refuse_others("open route", names, settings.ROUTES, " ROUTES opens them.")


def check_languages(tags: Any) -> None:
    """Raise ValidationError for what is no language tag, or of no language."""
    for tag in _listed("languages", tags):
        if not LANGUAGE.fullmatch(tag) or english_name(tag) == tag:
            raise ValidationError(f"{tag!r} is no language: use codes such as en, pl or pt-br.")


def check_models(chosen: Any) -> None:
    """Raise ValidationError for a setting that no role has, or a model without a provider."""
    if not isinstance(chosen, Mapping):
        raise ValidationError("models: must be settings with the model of each.")
    for setting, model in chosen.items():
        if setting not in MODEL_SETTINGS:
            allowed = ", ".join(MODEL_SETTINGS)
            raise ValidationError(f"{setting!r} sets no model. Allowed: {allowed}.")
        if not isinstance(model, str) or not model.strip():
            raise ValidationError(f"{setting}: names no model; {NO_MODEL} lets the role ask none.")
        name, provider = parse_model_name(model)
        if model != NO_MODEL and not (name and provider in settings.PROVIDERS):
            known = ", ".join(settings.PROVIDERS)
            raise ValidationError(
                f"{setting}: {model!r} names no known provider; write model@provider with one of "
                f"{known}, or {NO_MODEL}."
            )


def _refuse_others(kind: str, names: Any, known: Iterable[str], more: str = "") -> None:
    allowed = list(known)
    for name in _listed(kind, names):
        if name not in allowed:
            there = ", ".join(allowed) or "none yet"
            raise ValidationError(f"There is no {kind} {name!r}. There are: {there}.{more}")


def _listed(kind: str, names: Any) -> list[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValidationError(f"{kind}: must be a list of names.")
    return names


def check_text(text: Any) -> None:
    """Raise ValidationError for what is no text, or cannot be stored."""
    if not isinstance(text, str) or not is_storable(text):
        raise ValidationError("Must be text without null characters.")


def check_opening_hours(text: Any) -> None:
    """Raise ValidationError unless a text says when people are there, or is empty."""
    check_text(text)
    try:
        OpeningHours.parse(text)
    except ValueError as error:
        raise ValidationError(str(error)) from error


CHECKS: dict[str, Callable[[Any], None]] = {
    "collections": check_collections,
    "routes": check_routes,
    "models": check_models,
    "languages": check_languages,
    "opening_hours": check_opening_hours,
    **dict.fromkeys(TEXTS, check_text),
}


class Assistant(Model):
    """One of several assistants in a deployment; what it leaves empty, the settings say."""

    name = CharField(
        max_length=63,
        unique=True,
        validators=[RegexValidator(COLLECTION_NAME, "Use a-z, 0-9, '-' and '_'.")],
    )  # By which it is chosen.
    title = CharField(max_length=100, blank=True)  # What people see.
    domain_name = CharField(max_length=100, blank=True)
    domain_scope = CharField(max_length=500, blank=True)
    # By name: when one is deleted, nothing else is searched instead.
    collections = JSONField(default=list, blank=True)
    routes = JSONField(default=list, blank=True)
    models = JSONField(default=dict, blank=True)  # "RESPONSE_MODEL" → "model@provider" or "none"
    tone = CharField(max_length=300, blank=True)
    languages = JSONField(default=list, blank=True)  # That it answers in.
    audience = CharField(max_length=100, blank=True)
    opening_hours = CharField(max_length=500, blank=True)
    greeting = CharField(max_length=1000, blank=True)
    strictness = CharField(
        max_length=6, blank=True, choices=[(each, each) for each in STRICTNESSES]
    )
    contact = CharField(max_length=300, blank=True)
    updated = DateTimeField(auto_now=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.title or self.name

    def clean(self) -> None:
        """Raise ValidationError that says of each field what is wrong and what is allowed."""
        errors: dict[str, ValidationError] = {}
        for name, check in CHECKS.items():
            try:
                check(getattr(self, name))
            except ValidationError as error:
                errors[name] = error
        if errors:
            raise ValidationError(errors)

    @property
    def open_routes(self) -> list[str]:
        """Its routes that the deployment still opens."""
        return [each for each in self.routes or settings.ROUTES if each in settings.ROUTES]

    def persona(self) -> Persona:
        """Return what a turn that begins now sees of it."""
        own: dict[str, Any] = {
            "domain_name": self.domain_name,
            "domain_scope": self.domain_scope,
            "contact": self.contact,
            "strictness": self.strictness,
            "opening_hours": self.opening_hours,
        }
        return Persona(
            name=self.name,
            title=self.title,
            routes=self.open_routes,
            models=models_by_asker(self.models),
            tone=self.tone,
            languages=self.languages,
            greeting=self.greeting,
            **{name: said for name, said in own.items() if said},
        )


def models_by_asker(chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the model of every asker that has another one than in the settings; "": none.

    It is as if `chosen` stood among the settings: GEN_MODEL is for those that MODEL_PROFILE has
    ask it and that have no setting of their own.
    """
    shared = PROFILES[settings.MODEL_PROFILE] - settings.OWN_MODEL_ASKERS
    own: dict[str, str] = {}
    for asker in ASKERS:
        setting = f"{asker.upper()}_MODEL"
        model = chosen.get(setting) or (chosen.get(SHARED_MODEL) if asker in shared else None)
        if model is not None:
            own[asker] = "" if model == NO_MODEL else "@".join(parse_model_name(model))
    return own
