"""Staff groups: Viewer, Editor, Support and Operator, made by `migrate` and then yours.

A group is offered each permission once. So what an operator took away stays away, what they gave
stays given, a group they deleted is not made again, and a kind of row that comes with a later
version is still offered.
"""

from typing import Any

from django.apps import apps as registry
from django.apps.registry import Apps
from django.contrib.auth.models import Group, Permission
from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction
from django.db.models import Value
from django.db.models.functions import Concat

LOOK, WORK = "view", "view add change delete"
KEYS = "conversations.key"
OWN = {"connect": "connect_model"}  # permissions that are not about rows

# What each may do with the rows of an app, or of one kind, which goes before its app. Who may make
# users could make themselves one who may do everything: that is left to superusers.
GROUPS: dict[str, dict[str, str]] = {
    "Viewer": {"knowledge": LOOK, "conversations": LOOK, "agents": LOOK, "billing": LOOK, KEYS: ""},
    "Editor": {
        "knowledge": WORK,
        "knowledge.ingest": LOOK,
        "knowledge.entity": LOOK,
        "knowledge.relation": LOOK,
        "knowledge.receipt": LOOK,
        "conversations": LOOK,
        "conversations.assistant": "view change",
        "conversations.gap": "view change",
        "conversations.handover": "",
        KEYS: "",
        "agents.envelope": LOOK,
    },
    "Support": {
        "knowledge": LOOK,
        "conversations": LOOK,
        "conversations.handover": "view change",
        KEYS: "",
        "agents.envelope": LOOK,
        "billing": LOOK,
        "billing.refundcase": "view change",
    },
    "Operator": {
        "knowledge": LOOK,
        "knowledge.collection": "view change",
        "conversations": LOOK,
        "conversations.assistant": WORK,
        KEYS: "view add delete",
        "agents": LOOK,
        "agents.modelcall": "view connect",
        "agents.price": WORK,
        "agents.budget": WORK,
        "billing": LOOK,
    },
}


class StaffGroup(models.Model):
    """One of GROUPS as it was made here, and what it was offered."""

    name = models.CharField(max_length=20, primary_key=True)
    # None: it was deleted, or a group of that name had been made by hand before.
    group = models.OneToOneField(Group, on_delete=models.SET_NULL, null=True)
    offered = ArrayField(models.CharField(max_length=200), default=list)  # as "app.codename"

    def __str__(self) -> str:
        return self.name


def permitted(name: str) -> set[str]:
    """Return what a group is meant to have of the permissions there are, as `app.codename`."""
    rules = GROUPS[name]
    found = set()
    for app, kind, codename in Permission.objects.values_list(
        "content_type__app_label", "content_type__model", "codename"
    ):
        allowed = rules.get(f"{app}.{kind}", rules.get(app, "")).split()
        # A permission of one's own is named by what it is for: connect_model of model calls.
        if any(codename in {f"{each}_{kind}", OWN.get(each)} for each in allowed):
            found.add(f"{app}.{codename}")
    return found


@transaction.atomic
def offer(apps: Apps = registry, **_: Any) -> None:
    """Make the groups that were never made, and offer each what it was not offered yet.

    `migrate` calls it when it is done and permissions are there, with the models as they are then:
    who went back to an earlier version may have no table for it.
    """
    if StaffGroup._meta.model_name not in apps.all_models["conversations"]:
        return
    for name in GROUPS:
        row, is_new = StaffGroup.objects.select_for_update().get_or_create(name=name)
        if is_new and not Group.objects.filter(name=name).exists():
            row.group = Group.objects.create(name=name)
        new = permitted(name) - set(row.offered)
        if row.group and new:
            label = Concat("content_type__app_label", Value("."), "codename")
            chosen = Permission.objects.annotate(label=label).filter(label__in=new)
            row.group.permissions.add(*chosen)
        row.offered = sorted({*row.offered, *new})
        row.save()
