"""Base: the name under which Django looks for a backend."""

import select
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from django.db.backends.postgresql import base

from conversations.lanes import LANE, Lane

if TYPE_CHECKING:
    from psycopg import Connection


PAUSE = "SELECT set_config('idle_in_transaction_session_timeout', %s, false)"
# Nothing waits for a person, a model or a network inside a transaction. A process that is stopped
# in the midst of one must not keep what it has locked for longer than a lease.
LONGEST_PAUSE_IN_A_TRANSACTION = "20s"


class DatabaseWrapper(base.DatabaseWrapper):
    """Takes connections from the pool and passes over those that the server has ended.

    Django would have the pool ask each one a question first: a round trip for every claim and
    every finish, a tenth of what a step takes.
    """

    lane: Lane | None = None  # in which the connection was taken

    def _configure_connection(self, connection: "Connection[Any]") -> bool:
        # Not as an option of the address: poolers refuse those. Once for each connection: Django
        # calls this again whenever one is taken from the pool.
        if connection is not self.connection:
            connection.execute(PAUSE, [LONGEST_PAUSE_IN_A_TRANSACTION])
        return bool(super()._configure_connection(connection))  # type: ignore[misc]

    def get_new_connection(self, conn_params: dict[str, Any]) -> "Connection[Any]":
        """Return a connection that is open as far as this side can know.

        Who is in a lane waits there for a place. Raises Busy.
        """
        lane = LANE.get()
        with ExitStack() as unless_opened:
            if lane:
                lane.enter()
                unless_opened.callback(lane.leave)
            connection = self._opened(conn_params)
            unless_opened.pop_all()
        self.lane = lane
        return connection

    def _opened(self, conn_params: dict[str, Any]) -> "Connection[Any]":
        connection: Connection[Any] = super().get_new_connection(conn_params)
        while self.pool and ended(connection):
            connection.close()
            self.pool.putconn(connection)
            connection = super().get_new_connection(conn_params)
        return connection

    def _close(self) -> None:
        lane, self.lane = self.lane, None
        try:
            super()._close()  # type: ignore[misc]
        finally:
            if lane:
                lane.leave()


def ended(connection: "Connection[Any]") -> bool:
    """Whether the server ended it: an idle connection has nothing to tell but that."""
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0))
