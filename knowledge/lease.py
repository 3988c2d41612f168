"""Lease: the right to work on a row of a table, which lapses unless its holder renews it.

Whoever claims a row writes a token into it. Others may claim it once its lease has lapsed, and only
the holder of the current token can write what came of it, so the work takes effect once. One
thread per process renews what the process holds, of whatever table.
"""

import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import Error, connection

RENEW_SECONDS = 10.0

Token = uuid.UUID
# Sets a new end to the leases with these tokens in the table; returns the tokens still there.
Extend = Callable[[Collection[Token]], Collection[Token]]


class Leases:
    """This process's leases on rows of one table, each for `duration` unless renewed."""

    def __init__(self, extend: Extend, duration: timedelta) -> None:
        self.extend = extend
        self.duration = duration
        # When each was last known to be ours, by time.monotonic. It passes while a process stands.
        self.renewed_at: dict[Token, float] = {}
        self.lock = threading.Lock()

    @contextmanager
    def renewed(self, token: Token) -> Iterator[None]:
        """Keep the lease with this token alive while the block runs."""
        with self.lock:
            self.renewed_at[token] = time.monotonic()
        RENEWAL.keep(self)
        try:
            yield
        finally:
            with self.lock:
                self.renewed_at.pop(token, None)

    def may_have_lapsed(self, token: Token) -> bool:
        """Tell whether somebody else may hold the row by now, without asking anybody.

        So a process finds out that it was stopped for longer than a lease.
        """
        with self.lock:
            last = self.renewed_at.get(token)
        return last is not None and time.monotonic() - last > self.duration.total_seconds()

    def renew(self, tokens: Collection[Token]) -> int:
        """Extend these leases; return how many were still ours."""
        time_of_renewal = time.monotonic()
        ours = set(self.extend(tokens))
        with self.lock:
            self.renewed_at.update(
                {token: time_of_renewal for token in self.renewed_at if token in ours}
            )
        return len(ours)

    def tokens(self) -> list[Token]:
        """Return the tokens of all that is held."""
        with self.lock:
            return list(self.renewed_at)

    def drop(self) -> list[Token]:
        """Renew nothing more; return the tokens, whose rows can be handed back."""
        with self.lock:
            tokens = list(self.renewed_at)
            self.renewed_at.clear()
        return tokens


class Renewal:
    """The thread that renews leases; it begins with the first."""

    def __init__(self) -> None:
        self.tables: list[Leases] = []
        self.thread: threading.Thread | None = None
        self.lock = threading.Lock()

    def keep(self, leases: Leases) -> None:
        """Renew these from now on."""
        with self.lock:
            if leases not in self.tables:
                self.tables.append(leases)
            if self.thread is None or not self.thread.is_alive():  # a fork leaves it behind
                self.thread = threading.Thread(target=self.run, name="leases", daemon=True)
                self.thread.start()

    def run(self) -> None:
        """Renew for ever what is held."""
        pause = threading.Event()
        while not pause.wait(RENEW_SECONDS):
            try:
                for leases in self.tables:
                    if tokens := leases.tokens():
                        leases.renew(tokens)
            except Error:
                # PostgreSQL is away: the next round may still be in time, else the lease lapses.
                continue
            finally:
                connection.close()


RENEWAL = Renewal()
