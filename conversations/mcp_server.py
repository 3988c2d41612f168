"""MCP server: the Model Context Protocol spoken with one visitor, over HTTP or standard streams.

It is imported at the first use (MCP_SERVER): the library of the protocol takes a second and 20 MB.
Requests know nothing of each other, so that any web process can answer any of them.
"""

import json
import logging
import re
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

import anyio
from anyio import to_thread
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    CancelledNotificationParams,
    ListToolsResult,
    PaginatedRequestParams,
    RequestId,
    TextContent,
    Tool,
    ToolAnnotations,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError
from redis import RedisError
from rest_framework.exceptions import APIException

from agents import envelopes
from agents.models import Envelope
from agents.steps import faults
from conversations import mcp_tools
from conversations.errors import ConversationError, KeyIsOver, ServerAway
from conversations.lanes import FOLLOWERS, LANE, OTHERS, QUESTIONS, Lane
from conversations.mcp_tools import TOOLS, UNANSWERED, AskArguments, Visitor, described
from conversations.services import current
from conversations.stream import BLOCK_MS, FIRST, KeyEnded, listening
from knowledge.errors import KnowledgeError

log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]
Given = ParamSpec("Given")
Result = TypeVar("Result")

LARGEST_REQUEST = 1_000_000  # bytes
# What is said to who asked, as it is.
EXPECTED = (ConversationError, KnowledgeError, APIException)
RUN: dict[str, Callable[[Visitor, Any], BaseModel]] = {
    "search": mcp_tools.search,
    "get_document": mcp_tools.get_document,
}
SESSION_HEADER, VERSION_HEADER = b"mcp-session-id", b"mcp-protocol-version"
# As we name them. Whoever sends another one has it ignored.
SESSION = re.compile(r"[0-9a-f]{32}")
LONGEST_REQUEST_ID = 64


class Service:
    """What a client may have done for a visitor.

    `session` is the client's, where a request that it sends later may cancel this one.
    """

    def __init__(self, visitor: Visitor, session: str = "") -> None:
        self.visitor, self.session = visitor, session

    def server(self) -> Server[Any]:
        """Return what speaks the protocol."""
        server = Server[Any](
            "docent",
            title="Docent",
            version=str(settings.SPECTACULAR_SETTINGS["VERSION"]),
            instructions=mcp_tools.instructions(),
            on_list_tools=self.list_tools,
            on_call_tool=self.call,
        )
        server.add_notification_handler(
            "notifications/cancelled", CancelledNotificationParams, self.cancel
        )
        return server

    async def list_tools(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """Return the tools."""
        rows = await in_thread(OTHERS, lambda: list(described(self.visitor)))
        return ListToolsResult(
            tools=[
                Tool(
                    name=tool.name,
                    title=tool.title,
                    description=description,
                    input_schema=arguments,
                    output_schema=result,
                    annotations=ToolAnnotations(
                        title=tool.title,
                        read_only_hint=tool.is_read_only,
                        destructive_hint=False,
                        idempotent_hint=tool.is_read_only,
                        open_world_hint=False,
                    ),
                )
                for tool, description, arguments, result in rows
            ]
        )

    async def call(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        """Call a tool. What was wrong with the call is a result, so that a model can mend it."""
        tool = TOOLS.get(params.name)
        if tool is None:
            raise MCPError(
                INVALID_PARAMS, f"There is no tool of that name, only: {', '.join(TOOLS)}."
            )
        try:
            asked = tool.arguments.model_validate(params.arguments or {})
            if context.request is None:
                # Of HTTP, each request brings its key anew.
                await in_thread(OTHERS, mcp_tools.refuse_ended, self.visitor)
            if isinstance(asked, AskArguments):
                return await self._ask(context, asked)
            return told(await in_thread(OTHERS, RUN[tool.name], self.visitor, asked))
        except ValidationError as error:
            return failed(sentence(error))
        except EXPECTED as error:
            return failed(said(error))
        except KeyEnded:
            return failed(str(KeyIsOver()))

    async def cancel(self, context: Context, params: CancelledNotificationParams) -> None:
        """End the turn of a request that came before, perhaps to another process."""
        # The connection of a notification ends at once, and what it began is cancelled.
        with anyio.CancelScope(shield=True):
            if key := self.request_key(params.request_id):
                await in_thread(FOLLOWERS, mcp_tools.cancel_asked, self.visitor, key)

    async def _ask(self, context: Context, asked: AskArguments) -> CallToolResult:
        """Have a turn answered, telling of each step to who wants to know."""
        key = self.request_key(context.request_id)
        envelope = await in_thread(QUESTIONS, mcp_tools.begin, self.visitor, asked, key)
        try:
            turn = await self._ended(context, envelope)
        except anyio.get_cancelled_exc_class():
            if leaving_cancels(context):
                with anyio.CancelScope(shield=True):
                    await in_thread(FOLLOWERS, envelopes.cancel, envelope.pk)
            raise
        answer = await in_thread(FOLLOWERS, mcp_tools.answer, turn)
        return failed(str(answer)) if answer.status in UNANSWERED else told(answer)

    async def _ended(self, context: Context, envelope: Envelope) -> Envelope:
        """Return the turn once it has ended."""
        after, steps = FIRST, 0
        async with listening(self.visitor.key) as listener:
            while True:
                entries = await listener.read(envelope.target_list, after, block=BLOCK_MS)
                for after, event in entries:  # noqa: B007 the last is read after
                    if event["event"] == "agent_start":
                        steps += 1
                        role = json.loads(event["data"])["role"]
                        await context.session.report_progress(steps, message=role)
                if not entries or event["event"] == "workflow_complete":
                    # Who tells of the end may have died, or Redis may be away: the row knows.
                    turn = await in_thread(FOLLOWERS, current, envelope)
                    if turn.ended:
                        return turn

    def request_key(self, request_id: RequestId | None) -> str:
        """Return the Idempotency-Key of a request; none where it cannot be told from others."""
        name = str(request_id)
        is_usable = name.isascii() and name.isprintable() and len(name) <= LONGEST_REQUEST_ID
        is_known = self.session and request_id is not None and is_usable
        return f"mcp:{self.session}:{name}" if is_known else ""


def leaving_cancels(context: Context) -> bool:
    """Whether a client that leaves wants no answer any more.

    Before 2026, clients said so, and a lost connection said nothing.
    """
    is_http = context.request is not None
    return not is_http or context.protocol_version in MODERN_PROTOCOL_VERSIONS


def told(result: BaseModel) -> CallToolResult:
    """Return what a tool brought, for people and for programs."""
    content = [TextContent(text=str(result))]
    return CallToolResult(content=content, structured_content=result.model_dump(mode="json"))


def failed(reason: str) -> CallToolResult:
    """Return why a tool brought nothing."""
    return CallToolResult(content=[TextContent(text=reason)], is_error=True)


def sentence(error: ValidationError) -> str:
    """Say which arguments are wrong."""
    wrong = (
        f"{'.'.join(map(str, each['loc']))}: {each['msg']}."
        for each in error.errors(include_url=False, include_input=False)
    )
    return " ".join(wrong)


def said(error: Exception) -> str:
    """Say what was wrong with a call, and name nobody what it does not reach."""
    if isinstance(error, APIException):
        return str(error.detail)
    return str(getattr(error, "here", error))


async def in_thread(
    lane: Lane, function: Callable[Given, Result], *given: Given.args, **named: Given.kwargs
) -> Result:
    """Call what asks the database; it ends what it began, also for a client that left."""
    return await to_thread.run_sync(partial(_attempt, lane, partial(function, *given, **named)))


def _attempt(lane: Lane, function: Callable[[], Result]) -> Result:
    """Call it, with no connection left open. What nobody expected is kept for the operator."""
    LANE.set(lane)
    try:
        return function()
    except EXPECTED:
        raise
    except (OperationalError, InterfaceError, RedisError) as error:
        log.warning("a server is away: %s", error)
        raise ServerAway from error
    except BaseException as error:
        code = faults.record(error, role="mcp")
        told = f"Something went wrong. Tell the operator: {code}"
        raise MCPError(INTERNAL_ERROR, told) from error
    finally:
        connection.close()


async def respond(visitor: Visitor, scope: Any, receive: Any, send: Any) -> None:
    """Answer one request over HTTP."""
    headers = dict(scope["headers"])
    session = headers.get(SESSION_HEADER, b"").decode("latin-1")
    service = Service(visitor, session if SESSION.fullmatch(session) else "")
    is_first = SESSION_HEADER not in headers and VERSION_HEADER not in headers

    async def send_named(message: Any) -> None:
        if is_first and message["type"] == "http.response.start":
            name = uuid.uuid4().hex.encode()
            message = message | {"headers": [*message["headers"], (SESSION_HEADER, name)]}
        await send(message)

    manager = StreamableHTTPSessionManager(
        service.server(), stateless=True, max_request_body_size=LARGEST_REQUEST
    )
    async with manager.run():
        await manager.handle_request(scope, receive, send_named)


async def serve_streams(visitor: Visitor) -> None:
    """Serve a client that started this process, until it closes standard input."""
    server = Service(visitor).server()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
