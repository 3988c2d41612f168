"""Policy: what browsers are told of every page, and what becomes of HTTP where there is HTTPS."""

import os
import re
import subprocess
import sys

import pytest
from django.conf import settings as project
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

PAGES = ("/", "/admin/login/", "/admin/", "/api/docs/", "/api/schema/", "/nothing/here", "/v1/x")
SCRIPT_WITHIN = re.compile(
    r"<script(?![^>]*\bsrc=)(?![^>]*type=\"application/json\")", re.IGNORECASE
)
HANDLER = re.compile(r"\son(?:click|load|error|change|submit)=", re.IGNORECASE)


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    client.force_login(User.objects.create_superuser("ann"))
    return client


@pytest.mark.parametrize("path", [*PAGES, "/static/conversations/chat.css", "/healthz"])
def test_every_response_says_what_a_browser_may_do(staff: Client, path: str) -> None:
    response = staff.get(path)
    policy = response["Content-Security-Policy"]
    assert policy.startswith(("default-src 'self'; object-src 'none'", "default-src 'none'"))
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-inline' 'unsafe" not in policy
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"
    assert response.get("X-Frame-Options", "DENY") == "DENY"
    response.close()


@pytest.mark.parametrize("path", ["/", "/admin/", "/admin/login/", "/api/docs/"])
def test_no_script_is_written_into_a_page(staff: Client, path: str) -> None:
    response = staff.get(path, follow=True)
    page = response.content.decode()
    assert not SCRIPT_WITHIN.search(page)
    assert not HANDLER.search(page)
    assert "script-src 'unsafe-inline'" not in response["Content-Security-Policy"]


def test_the_start_page_allows_nothing_unsafe(staff: Client) -> None:
    assert "unsafe" not in staff.get("/")["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["https://evil.example/", "//evil.example", "/\\evil.example"])
def test_a_login_with_a_foreign_next_lands_on_a_page_that_exists(
    client: Client, db: None, path: str
) -> None:
    User.objects.create_superuser("ann", password="long enough")
    form = {"username": "ann", "password": "long enough", "next": path}
    response = client.post("/admin/login/", form)
    assert (response.status_code, response["Location"]) == (302, "/admin/")
    assert client.get(response["Location"]).status_code == 200


@pytest.mark.django_db
def test_what_is_asked_over_http_is_sent_on_to_https_but_for_probes(
    client: Client, settings: Settings
) -> None:
    settings.SECURE_SSL_REDIRECT, settings.SECURE_HSTS_SECONDS = True, 3600
    response = client.get("/api/docs/")
    assert (response.status_code, response["Location"]) == (301, "https://testserver/api/docs/")
    assert client.get("/healthz").status_code == 200
    assert client.get("/", secure=True)["Strict-Transport-Security"] == "max-age=3600"


def test_a_deployment_with_https_has_no_warnings() -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        env=os.environ | {"PUBLIC_URL": "https://docs.example.com"},
        cwd=project.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", ["/admin/", "/admin/queues/", "/admin/knowledge/document/"])
def test_admin_has_landmarks_one_heading_and_no_page_that_reloads(staff: Client, path: str) -> None:
    page = staff.get(path).content.decode()
    assert [page.count(f"<{tag}") for tag in ("main ", "h1 ", "header>")] == [1, 1, 1]
    assert 'href="#content"' in page
    assert 'aria-current="page"' in page
    assert "http-equiv" not in page


def test_nothing_is_clicked_in_the_frame_of_admin_that_no_keyboard_reaches(staff: Client) -> None:
    page = staff.get("/admin/").content.decode()
    clicked = re.findall(r"<(\w+)(?=[^>]*\sx-on:click=)", page)
    assert set(clicked) == {"button"}
