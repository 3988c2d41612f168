"""Serializers: what chat clients may send."""

import re
from typing import Any

from rest_framework import serializers

SESSION = re.compile(r"^[\w.:-]{1,64}\Z")


class ChatRequest(serializers.Serializer[Any]):
    """The body of `POST /api/chat/`."""

    message = serializers.CharField(
        allow_blank=True, trim_whitespace=False, help_text="What the user says."
    )
    session_id = serializers.RegexField(
        SESSION,
        required=False,
        help_text="Continues your conversation of this name, or begins it.",
        error_messages={"invalid": "Use 1 to 64 letters, digits, '.', ':', '_' or '-'."},
    )
    user_id = serializers.CharField(required=False, max_length=128, allow_blank=True)
    collections = serializers.ListField(
        child=serializers.CharField(max_length=63),
        required=False,
        help_text="Names of the collections to answer from; all of them when left out.",
    )
    wait = serializers.BooleanField(
        default=True, help_text="False: answer at once with the turn's id."
    )
