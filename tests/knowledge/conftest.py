"""Documents small enough to read, about a product that does not exist."""

from pathlib import Path

import pytest

PAGES = {
    "ferry-booking.md": """---
title: Booking a ferry
description: How passengers reserve a place on the night ferry.
tags: [ferry, booking]
last_updated: 2026-03-04
---

import Card from '@site/Card';

Places on the night ferry are booked at the harbour counter or by telephone.

## Cancel a booking

A booking can be cancelled until two hours before departure. The price is refunded to the card it
was paid with. See [the refund rules](refunds.md).

<Card title="gone" />

## Take a bicycle

| Bicycle | Price |
|---------|-------|
| Folding | free  |
| Tandem  | 12 €  |
""",
    "rooms/lighthouse.md": """---
title: Sleeping in the lighthouse
---

The lighthouse has four rooms for guests. Breakfast is served at seven in the lantern room.

## Keys

The key of a room is handed out by the keeper, who lives in the white house next door.
""",
    "rooms/quiet-hours.html": """<html lang="en"><head><title>Quiet hours</title></head><body>
<nav>Home</nav><main><h1>Quiet hours</h1><p>Between ten in the evening and six in the morning
guests of the lighthouse must not play the foghorn.</p><script>x()</script></main></body></html>""",
    "fog.txt": "The foghorn sounds when visibility falls below one nautical mile. Every thirty "
    "seconds it sounds twice. Sailors report a broken foghorn to the harbour master.",
}


@pytest.fixture
def island(tmp_path: Path) -> Path:
    """Return a folder of four pages."""
    root = tmp_path / "island"
    for name, text in PAGES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root
