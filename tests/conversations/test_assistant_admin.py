"""The form of an assistant, and its files in both directions."""

from http import HTTPStatus
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from conversations.assistants import Assistant
from knowledge.models import Collection
from tests import factories

LIST = reverse("admin:conversations_assistant_changelist")
ADD = reverse("admin:conversations_assistant_add")
IMPORT = reverse("admin:conversations_assistant_import")


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    """A browser whose user may do everything."""
    client.force_login(User.objects.create_superuser("root"))
    return client


def change(assistant: Assistant) -> str:
    return reverse("admin:conversations_assistant_change", args=[assistant.pk])


def upload(staff: Client, content: bytes) -> Any:
    return staff.post(IMPORT, {"file": SimpleUploadedFile("bank.toml", content)})


def test_an_assistant_is_made_by_the_form(staff: Client) -> None:
    factories.collection("loans")
    fields = {
        "name": "bank",
        "collections": ["loans"],
        "routes": ["documentation"],
        "models": "GEN_MODEL = gpt-4o-mini@openai\n\nQUALITY_MODEL=none",
        "languages": "PL, en,pl",
        "tone": "Calm.",
    }
    assert staff.post(ADD, fields).status_code == HTTPStatus.FOUND
    bank = Assistant.objects.get()
    assert bank.collections == ["loans"]
    assert bank.models == {"GEN_MODEL": "gpt-4o-mini@openai", "QUALITY_MODEL": "none"}
    assert bank.languages == ["pl", "en"]
    page = staff.get(change(bank)).content.decode()
    assert "GEN_MODEL=gpt-4o-mini@openai\nQUALITY_MODEL=none" in page
    assert 'value="pl, en"' in page


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"models": "GEN_MODEL"}, "GEN_MODEL: names no model"),
        ({"models": "x=y@openai"}, "&#x27;x&#x27; sets no model. Allowed: GEN_MODEL"),
        ({"languages": "english"}, "&#x27;english&#x27; is no language"),
        ({"collections": ["nowhere"]}, "nowhere is not one of the available choices"),
        ({"strictness": "extreme"}, "extreme is not one of the available choices"),
        ({"name": "A b"}, "Use a-z, 0-9"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    staff: Client, fields: dict[str, Any], said: str
) -> None:
    page = staff.post(ADD, {"name": "bank"} | fields)
    assert page.status_code == HTTPStatus.OK
    assert said in page.content.decode()
    assert not Assistant.objects.exists()


def test_the_name_stays(staff: Client) -> None:
    bank = Assistant.objects.create(name="bank")
    staff.post(change(bank), {"name": "other", "title": "Bank"})
    bank.refresh_from_db()
    assert (bank.name, bank.title) == ("bank", "Bank")


def test_a_collection_that_is_gone_does_not_go_unseen(staff: Client) -> None:
    factories.collection("loans")
    bank = Assistant.objects.create(name="bank", collections=["loans"])
    Collection.objects.all().delete()
    assert "loans (is not there)" in staff.get(change(bank)).content.decode()
    page = staff.post(change(bank), {"collections": ["loans"]}).content.decode()
    assert "There is no collection &#x27;loans&#x27;" in page
    bank.refresh_from_db()
    assert bank.collections == ["loans"]


def test_one_is_exported_as_a_file_and_several_in_a_zip(staff: Client) -> None:
    bank, shop = (Assistant.objects.create(name=name) for name in ("bank", "shop"))
    action = {"action": "export_files", "_selected_action": [bank.pk]}
    one = staff.post(LIST, action)
    assert one["Content-Disposition"] == 'attachment; filename="bank.toml"'
    assert one.content == b'name = "bank"\n'
    both = staff.post(LIST, action | {"_selected_action": [bank.pk, shop.pk]})
    with ZipFile(BytesIO(both.content)) as archive:
        assert sorted(archive.namelist()) == ["bank.toml", "shop.toml"]
        assert archive.read("shop.toml") == b'name = "shop"\n'


def test_a_file_is_imported_and_a_wrong_one_refused_with_the_reason(staff: Client) -> None:
    assert IMPORT in staff.get(LIST).content.decode()
    assert staff.get(IMPORT).status_code == HTTPStatus.OK
    taken = upload(staff, b'name = "bank"\ntitle = "Bank"')
    assert taken.headers["Location"] == change(Assistant.objects.get(title="Bank"))
    refused = upload(staff, b'name = "bank"\ntone = 3')
    assert refused.status_code == HTTPStatus.BAD_REQUEST
    assert "tone: Input should be a valid string" in refused.content.decode()
    assert "Choose a file." in staff.post(IMPORT).content.decode()
    assert Assistant.objects.get().title == "Bank"


def test_staff_without_the_right_import_nothing(client: Client, db: None) -> None:
    client.force_login(User.objects.create_user("clerk", is_staff=True))
    assert upload(client, b'name = "bank"').status_code == HTTPStatus.FORBIDDEN
    assert not Assistant.objects.exists()
