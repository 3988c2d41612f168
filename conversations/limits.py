"""Limits: how often may be asked in a while, with a key, from an address, and by who logs in.

Redis counts, so that no more pass than allowed however many ask at once, and in how many web
processes ever. A Redis that is away limits nothing: requests are answered, and an operator can
log in to mend it.
"""

import ipaddress
import math
from time import time
from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.crypto import salted_hmac
from django.utils.deprecation import MiddlewareMixin
from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from agents.steps import events
from conversations import refusals
from conversations.authentication import key_id
from conversations.errors import Busy
from conversations.lanes import LANE, lane_of
from conversations.openai_errors import is_api, shaped
from conversations.refusals import Kind

MINUTE, QUARTER_HOUR = 60, 900
# What probes ask, every few seconds.
PROBES = ("/healthz", "/readyz", "/metrics")
# An IPv6 address is one of as many as a customer wants: what a provider gives to one counts as one.
IPV6_PREFIX = 64
# Whoever tries passwords of one name from many addresses; higher, as it shuts its owner out, too.
LOGINS_OF_A_NAME = 10


class TooManyRequests(Exception):
    """Says so, and in how many seconds it makes sense to try again."""

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(f"{message} Try again in {seconds:,} seconds.")
        self.retry_seconds = seconds


def spend(pot: str, most: int, seconds: int) -> int:
    """Count one more in a pot that empties every so many seconds.

    Return 0, or how many seconds are left when there were more than `most`; 0 of them: no limit.
    """
    if not most:
        return 0
    name = _name(pot, seconds)
    replies = events.send([("INCR", name), ("EXPIRE", name, seconds)])
    if not replies or int(replies[0]) <= most:
        return 0
    return max(1, math.ceil(seconds - time() % seconds))


def give_back(pot: str, seconds: int) -> None:
    """Count one less."""
    events.send([("DECR", _name(pot, seconds)), ("EXPIRE", _name(pot, seconds), seconds)])


def _name(pot: str, seconds: int) -> str:
    """The pot of this stretch of time: the next one begins empty."""
    return f"limit:{pot}:{seconds}:{int(time() // seconds)}"


def visitor(request: HttpRequest) -> str:
    """Return what tells the address of a visitor apart, and not the address itself."""
    return salted_hmac("visitor", network(request.META.get("REMOTE_ADDR") or "")).hexdigest()[:12]


def network(address: str) -> str:
    """Return what counts as one address: of IPv6 the part that a provider gives to a customer."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if parsed.version == 6 and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, IPV6_PREFIX), strict=False))
    return str(parsed.ipv4_mapped or parsed) if parsed.version == 6 else str(parsed)


class KeyThrottle(BaseThrottle):
    """Counts what is asked with a key."""

    def allow_request(self, request: Request, view: Any) -> bool:
        """Return True, or raise what says the limit."""
        key, most = key_id(request), settings.MAX_REQUESTS_PER_KEY
        if key and (left := spend(f"key:{key}", most, MINUTE)):
            refusals.note(Kind.KEY)
            raise Throttled(left, f"No more than {most:,} requests a minute with one key.")
        return True


class AddressLimit(MiddlewareMixin):
    """Counts what is asked from an address, and answers 429 wherever there was too much.

    What passes goes on in the lane of its kind.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        """Refuse what is too much."""
        most = settings.MAX_REQUESTS_PER_ADDRESS
        if request.path in PROBES:
            return None
        LANE.set(lane_of(request.method or "", request.path))
        if left := spend(f"address:{visitor(request)}", most, MINUTE):
            refusals.note(Kind.ADDRESS)
            said = f"No more than {most:,} requests a minute from one address."
            return refusal(request, TooManyRequests(said, left))
        return None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer for logins that are too many, and for who waited in vain."""
        return refusal(request, error) if isinstance(error, TooManyRequests | Busy) else None


def refusal(request: HttpRequest, error: TooManyRequests | Busy) -> HttpResponse:
    """Return 429: JSON to API clients and to the script of the chat page, text to people."""
    sentence, response = str(error), HttpResponse(content_type="text/plain", status=429)
    if is_api(request.path):
        body = shaped(request.path, 429, {"code": "throttled", "detail": sentence})
        response = JsonResponse(body, status=429)
    elif request.headers.get("Accept") == "application/json":
        response = JsonResponse({"error": sentence}, status=429)
    else:
        response.write(sentence)
    response["Retry-After"] = str(error.retry_seconds)
    return response


class LimitedLogin(ModelBackend):
    """Lets people log in with a password, unless too many were wrong."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **more: Any,
    ) -> User | None:
        """Return the user, or None. Raises TooManyRequests.

        An attempt counts before it is looked at, or many at once would all get through; one that
        was right is given back.
        """
        if request is None:
            return super().authenticate(request, username, password, **more)
        most = settings.MAX_FAILED_LOGINS
        name = salted_hmac("login", str(username).casefold()).hexdigest()[:12]
        pots = {f"logins:{visitor(request)}": most, f"logins:{name}": most * LOGINS_OF_A_NAME}
        if left := max(spend(pot, limit, QUARTER_HOUR) for pot, limit in pots.items()):
            refusals.note(Kind.LOGIN)
            raise TooManyRequests("Too many logins have failed.", left)
        user = super().authenticate(request, username, password, **more)
        if user is not None and most:
            for pot in pots:
                give_back(pot, QUARTER_HOUR)
        return user
