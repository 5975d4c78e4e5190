"""The MCP server: the journal's tools for one client, in both eras of the protocol.

The SDK's low-level server speaks the protocol; whatever an agent may get wrong is answered here, in
words it can use.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any, TypeAlias, cast

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from agent_journal.config import Settings
from agent_journal.faces import provenance
from agent_journal.faces.framing import escape_controls
from agent_journal.faces.mcp import tools
from agent_journal.faces.mcp.background import BackgroundJournal
from agent_journal.faces.mcp.tools import Answer
from agent_journal.faces.mcp.wire import READER, Wire
from agent_journal.journal import Journal
from agent_journal.model import Provenance

_GRACE_S = 1.4  # for requests that are still unanswered at the end
_UPKEEP_GRACE_S = 0.3
_THREADS_GRACE_S = 0.1
_ROOTS_WAIT_S = 1.0
_PLUGIN = "agent-journal/plugin"  # the capability by which our own plugins make themselves known
_PLUGIN_PROTOCOL = 1  # the newest that is understood, and so are all before it
_CALLS_AT_ONCE = 64  # more than any host sends; a search may wait 2 s for the model
_LOADED_AT_ONCE = {"anthropic/alwaysLoad": True}
"""Without it Claude Code shows agents the tools' names alone, until they ask: no guidance, no use.

Who wants that anyway sets ``alwaysLoad`` to false in its configuration, which wins.
"""

_log = logging.getLogger("agent_journal")


@dataclass(frozen=True, slots=True)
class _RawCall:
    """A call as it came, before the SDK's own checks, whose refusals agents can't use."""

    name: str
    arguments: object
    meta: Mapping[str, object]


_Context: TypeAlias = ServerRequestContext[Any, Any]  # the SDK's lifespan and transport data


class _Service:
    """What the server answers: the handlers, and what is known about the one client."""

    def __init__(self, settings: Settings, wire: Wire, journal: BackgroundJournal) -> None:
        self._wire = wire
        self._journal = journal
        self._refusal = _refusal(settings)
        self._tools = (
            () if self._refusal else tools.definitions([tag.name for tag in settings.tags])
        )
        self._limiter = anyio.CapacityLimiter(_CALLS_AT_ONCE)
        self._directory = provenance.working_directory()
        self._roots: list[str] | None = None
        self._asking = anyio.Lock()

    def server(self) -> Server[Any]:
        """Return the SDK's server with our handlers: tools, and nothing else."""
        server = Server(
            "agent-journal",
            version=version("agent-journal"),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )
        # Ours alone: the SDK's default one hands spans to whatever telemetry is installed.
        server.middleware[:] = [self._keep_raw_call]
        return server

    async def _list_tools(
        self, context: _Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        _heed_plugin(context.session)
        if self._tools:
            self._journal.wake()
        return types.ListToolsResult(tools=[_definition(tool) for tool in self._tools])

    async def _keep_raw_call(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        if ctx.method != "tools/call":
            return await call_next(ctx)
        params: Mapping[str, Any] = ctx.params or {}
        name = params.get("name")
        meta = params.get("_meta")
        call = _RawCall(
            name if isinstance(name, str) else "",
            params.get("arguments"),
            meta if isinstance(meta, dict) else {},
        )
        checked = {**params, "name": call.name, "arguments": {}}
        if ctx.meta is None:  # it can't be understood, which is no reason to refuse the call
            checked.pop("_meta", None)
        return await call_next(replace(ctx, params=checked, request=call))

    async def _call_tool(
        self, context: _Context, _params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        call = cast("_RawCall", context.request)  # `_keep_raw_call` put it there
        if self._wire.is_late(context.request_id):
            answer = Answer("the journal server is shutting down; nothing was done", is_error=True)
        else:
            answer = await self._answer(call, context.session)
        text = types.TextContent(type="text", text=answer.text)
        return types.CallToolResult(content=[text], is_error=answer.is_error)

    async def _answer(self, call: _RawCall, session: ServerSession) -> Answer:
        if self._refusal:
            return Answer(escape_controls(self._refusal), is_error=True)
        caller = await self._caller(session, call.meta)
        answer = await anyio.to_thread.run_sync(
            tools.call,
            call.name,
            call.arguments,
            self._journal.get,
            caller,
            limiter=self._limiter,
        )
        if answer.leaves_work:
            self._journal.wake()
        return answer

    async def _caller(
        self, session: ServerSession, meta: Mapping[str, object]
    ) -> Callable[[], Provenance]:
        """Return what tells who calls; it may take a second, and is for threads."""
        client = session.client_params
        told = provenance.told(os.environ, meta, client.client_info.name if client else "")
        if provenance.is_from_plugin(meta):  # its own surroundings say nothing
            return partial(provenance.complete, told)
        roots = [] if told.project else await self._client_roots(session)
        return partial(provenance.complete, told, roots=roots, directory=self._directory)

    async def _client_roots(self, session: ServerSession) -> list[str]:
        """Ask the client for its roots, once, for at most a second."""
        async with self._asking:
            if self._roots is None:
                self._roots = await _ask_for_roots(session)
            return self._roots


async def _ask_for_roots(session: ServerSession) -> list[str]:
    # Roots are deprecated and gone from the stateless era. This is the only place that knows of
    # them; the plain request spares the warning that the SDK's own method for them gives.
    capabilities = session.client_capabilities
    if capabilities is None or capabilities.roots is None or not session.can_send_request:
        return []
    try:
        found = await session.send_request(
            types.ListRootsRequest(), types.ListRootsResult, _ROOTS_WAIT_S
        )
    except (MCPError, ValidationError):
        return []
    return [str(root.uri) for root in found.roots]


def run(settings: Settings, reading: int, writing: int) -> int:
    """Serve the client at the other end of two descriptors; see `faces.mcp.serve`.

    Returns:
        An exit code.
    """
    if refusal := _refusal(settings):
        _log.warning("no tools are offered: %s", refusal)
    return _leave(anyio.run(_serve, settings, Wire(reading, writing)))


async def _serve(settings: Settings, wire: Wire) -> BackgroundJournal:
    journal = BackgroundJournal(lambda: _open(settings))
    server = _Service(settings, wire, journal).server()
    async with wire.open(grace_s=_GRACE_S) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
        return journal


def _leave(journal: BackgroundJournal) -> int:
    if not journal.close(_UPKEEP_GRACE_S) or not _threads_end(_THREADS_GRACE_S):
        logging.shutdown()
        os._exit(0)
    return 0


def _open(settings: Settings) -> Journal:
    from agent_journal.assembly import open_journal  # noqa: PLC0415 - the handshake needn't wait

    return open_journal(settings)


def _refusal(settings: Settings) -> str:
    if settings.error:
        return f"the configuration can't be used: {settings.error}"
    if settings.enabled:
        return ""
    return f'the journal is disabled; set "enabled": true under "journal" in {settings.config_path}'


def _heed_plugin(session: ServerSession) -> None:
    capabilities = session.client_capabilities
    told = (capabilities.experimental or {}).get(_PLUGIN, {}) if capabilities else {}
    protocol = told.get("protocol")
    if isinstance(protocol, int) and protocol > _PLUGIN_PROTOCOL:
        _log.warning(
            "the plugin was installed by a newer agent-journal, and may say more than this one "
            "understands; run: agent-journal install opencode"
        )


def _definition(tool: tools.Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema,
        annotations=types.ToolAnnotations(
            read_only_hint=tool.is_read_only, destructive_hint=False, open_world_hint=False
        ),
        _meta=_LOADED_AT_ONCE,
    )


def _threads_end(wait_s: float) -> bool:
    """Tell whether all threads end in time, but for the one that reads: it holds nothing up."""
    ends = time.monotonic() + wait_s
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and thread.name != READER:
            thread.join(max(ends - time.monotonic(), 0.0))
            if thread.is_alive():
                return False
    return True
