"""Access of owners: every path of the API, asked with a key that reaches what is asked for."""

from http import HTTPStatus

import pytest
from django.contrib.auth.models import User
from django.test import Client

from knowledge.identifiers import Scope
from tests import factories
from tests.assistant.test_access import (
    Operation,
    address,
    every,
    make_things,
    nobody_works,
    send,
)

__all__ = ["nobody_works"]

# Some of them commit, and have it done elsewhere.
pytestmark = pytest.mark.django_db(transaction=True)


@every
def test_its_owner_comes_in(operation: Operation, nobody_works: None, client: Client) -> None:
    make_things()
    ann = User.objects.get(username="ann")
    where = address(operation, ann)
    bound = {} if operation.scope == Scope.ADMIN else {"collections": ["handbook"]}
    answer = send(client, operation, where, factories.key(ann, scopes=[operation.scope], **bound))
    refused = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}
    assert answer.status_code not in refused
    assert answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR
