"""Appearance: how admin looks."""

from typing import Any

from django.templatetags.static import static

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Docent",
    "SITE_HEADER": "Docent",
    "SITE_URL": "/",
    # By its name: there are no models yet when the settings are read.
    "SIDEBAR": {"navigation": "assistant.sidebar.navigation"},
    "DASHBOARD_CALLBACK": "assistant.home.dashboard",
    "GLOBAL_CALLBACK": "assistant.sidebar.page_shown",
    "STYLES": [lambda request: static("assistant/desk.css")],
    "SCRIPTS": [lambda request: static("assistant/desk.js")],
    "SITE_ICON": lambda request: static("conversations/icon.svg"),
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda request: static("conversations/icon.svg"),
        }
    ],
    # The teal of the chat page.
    "COLORS": {
        "primary": {
            "50": "oklch(97% .012 188)",
            "100": "oklch(93% .03 188)",
            "200": "oklch(87% .05 188)",
            "300": "oklch(80% .07 188)",
            "400": "oklch(75% .08 188)",
            "500": "oklch(60% .08 188)",
            "600": "oklch(45% .065 188)",
            "700": "oklch(39% .06 188)",
            "800": "oklch(34% .05 188)",
            "900": "oklch(30% .04 188)",
            "950": "oklch(22% .03 188)",
        }
    },
}
