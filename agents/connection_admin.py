"""Connection admin: the page that connects a provider of models, tries it and compares answers."""

import os
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST
from dotenv import dotenv_values
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from agents import connection_trial
from agents.llm import connection
from agents.llm.connection import Unconnected
from agents.names import PROFILES, Role
from knowledge.safe_html import html

PERMISSION = "agents.connect_model"
OTHER = ""


class ConnectionForm(forms.Form):
    """Which model of whom is to be tried."""

    provider = forms.ChoiceField(
        label="Who serves it",
        required=False,
        initial="openai",
        choices=[
            *connection.kinds().items(),
            (OTHER, "Another server that speaks OpenAI's chat API"),
        ],
        widget=UnfoldAdminSelectWidget,
    )
    address = forms.CharField(
        label="Address of its API",
        required=False,
        max_length=500,
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "https://host/v1"}),
        help_text="Left out, it is the known one. Prompts and the key are sent there.",
    )
    key = forms.CharField(
        label="Key",
        required=False,
        max_length=500,
        strip=True,
        # It never comes back with the page.
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="Never shown again. Left out, the one that is set for this address is used.",
    )
    model = forms.CharField(
        label="Model",
        max_length=200,
        widget=UnfoldAdminTextInputWidget(attrs={"list": "listed", "autocomplete": "off"}),
        help_text="Its name there.",
    )
    profile = forms.ChoiceField(
        label="Who asks it",
        required=False,
        choices=[
            ("", "As many roles as it is quick enough for"),
            *((each, each) for each in PROFILES),
        ],
        widget=UnfoldAdminSelectWidget,
    )
    compares = forms.BooleanField(
        label="Answer five questions before and after, which costs their tokens",
        required=False,
        initial=True,
    )
    saves = forms.BooleanField(label="Write it to .env when it answers", required=False)

    def clean(self) -> dict[str, Any]:
        """Refuse what cannot be connected, before a process is started for it."""
        cleaned = super().clean() or {}
        said = (cleaned.get(name, "") for name in ("provider", "address", "key"))
        try:
            connection.connected(*said)
        except Unconnected as error:
            raise forms.ValidationError(str(error)) from error
        return cleaned

    def options(self) -> list[str]:
        """Return what `models` is told of it; the key it reads."""
        said = self.cleaned_data
        name = said["provider"] or connection.name_of(said["address"])
        options = [f"--add={name}", f"--model={said['model']}", f"--address={said['address']}"]
        options += [f"--profile={said['profile']}"] if said["profile"] else []
        options += [] if said["compares"] else ["--no-compare"]
        return [*options, "--save" if said["saves"] else "--no-save"]


@never_cache
def connection_page(request: HttpRequest) -> HttpResponse:
    """Show what is set and what the latest trial told; begin one."""
    _refuse(request)
    form = ConnectionForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        by = request.user.get_username()
        if connection_trial.begin(form.options(), form.cleaned_data["key"], by=by):
            return redirect("admin-models")
        form.add_error(None, "Another model is being tried. Wait until that is over.")
    told = connection_trial.told()
    context = admin.site.each_context(request) | {
        "title": "Connect a model",
        "form": form,
        "set": _set(),
        "file": connection.env_file(),
        "writable": is_writable(),
        "shared": bool(os.environ.get("DATABASE_URL")),
        "told": told,
        "report": report(told),
    }
    return TemplateResponse(request, "agents/connection.html", context)


@require_POST
def listed_models(request: HttpRequest) -> JsonResponse:
    """Return the models that a provider lists, or why there are none."""
    _refuse(request)
    said = (request.POST.get(name, "") for name in ("provider", "address", "key"))
    try:
        return JsonResponse({"models": connection.listed_models(connection.connected(*said))})
    except Unconnected as error:
        return JsonResponse({"models": [], "error": str(error)})


def _refuse(request: HttpRequest) -> None:
    if not request.user.has_perm(PERMISSION):
        raise PermissionDenied


def _set() -> dict[str, str]:
    """Return the model that is asked now, and the one of `.env` if it waits for a restart."""
    now: str = settings.MODELS[Role.RESPONSE.value].model
    file = connection.env_file()
    said = dotenv_values(file).get("GEN_MODEL") if file.is_file() else ""
    waits = said if said and os.environ.get("GEN_MODEL") != said else ""
    return {"now": now, "profile": settings.MODEL_PROFILE, "waits": waits or ""}


def is_writable() -> bool:
    """Tell whether this process could write `.env`."""
    file = connection.env_file()
    return os.access(file.parent, os.W_OK) and (not file.exists() or os.access(file, os.W_OK))


def report(told: connection_trial.Told) -> dict[str, Any]:
    """Return what a page shows of a trial."""
    stages = ("connected", "tried", "measured", "compared", "saved", "left", "failed")
    found = {stage: told.first(stage) for stage in stages}
    asking, answered = told.all("asking"), told.all("answered")
    for pair in answered:
        pair["sides"] = [answer | {"html": html(answer["text"])} for answer in pair["answers"]]
    return found | {
        "asking": asking[-1] if asking and told.is_running else {},
        "notes": [line["text"] for line in told.all("note")],
        "answered": answered,
        "code": told.first(connection_trial.ENDED).get("code"),
    }
