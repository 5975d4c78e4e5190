"""JSON-RPC lines over a pair of descriptors, and an end that loses no answer.

The SDK's own transport cancels what is being handled when stdin ends, can't be interrupted while it
reads, and drops malformed requests, so that their senders wait for ever.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from pydantic import ValidationError

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]

READER = "stdin"
"""The name of the thread that reads; a daemon, since nothing can interrupt it."""

_CHUNK_BYTES = 64 * 1024
_log = logging.getLogger("agent_journal")


class Wire:
    """One client's lines, and how many of its requests are still unanswered.

    Args:
        reading: the descriptor that requests come from; any kind of file.
        writing: the descriptor that answers go to.
    """

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = reading
        self._writing = writing
        self._ends = anyio.Event()
        self._settled = anyio.Event()
        self._unanswered: set[types.RequestId] = set()
        self._late: set[types.RequestId] = set()
        self._broken = False

    def is_late(self, request_id: types.RequestId | None) -> bool:
        """Tell whether a request was read after the end had come: nothing new is begun then."""
        return request_id in self._late

    @asynccontextmanager
    async def open(self, *, grace_s: float) -> AsyncIterator[tuple[Incoming, Outgoing]]:
        """Carry messages until the end; then requests that were read are still answered.

        The end of stdin, SIGTERM, SIGHUP, SIGINT and a broken stdout end it. Whatever they find
        unanswered has `grace_s` seconds before the process exits under it.

        Yields:
            The streams that the SDK serves; the first one closes at the end.
        """
        to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
        outgoing, from_server = anyio.create_memory_object_stream[SessionMessage]()
        answers = outgoing.clone()
        async with anyio.create_task_group() as group, to_server, from_server, answers:
            group.start_soon(self._write, from_server)
            group.start_soon(self._heed_signals)
            group.start_soon(self._end, to_server, grace_s)
            threading.Thread(
                target=self._read,
                args=(asyncio.get_running_loop(), to_server, answers),
                name=READER,
                daemon=True,
            ).start()
            yield incoming, outgoing
            group.cancel_scope.cancel()

    def _read(
        self,
        loop: asyncio.AbstractEventLoop,
        to_server: MemoryObjectSendStream[SessionMessage | Exception],
        answers: Outgoing,
    ) -> None:
        for lines in self._lines():
            delivery = self._deliver(lines, to_server, answers)
            try:
                asyncio.run_coroutine_threadsafe(delivery, loop).result()
            except (RuntimeError, CancelledError):  # the loop is closed, or about to be
                delivery.close()
                return
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._ends.set)

    def _lines(self) -> Iterator[list[bytes]]:
        """Yield lines as they come, several at a time; the last one needs no line end."""
        parts: list[bytes] = []
        while chunk := self._next_chunk():
            *lines, rest = chunk.split(b"\n")
            if lines:
                lines[0] = b"".join([*parts, lines[0]])
                parts.clear()
                yield lines
            parts.append(rest)
        yield [b"".join(parts)]

    def _next_chunk(self) -> bytes:
        try:
            return os.read(self._reading, _CHUNK_BYTES)
        except OSError as error:  # such as a terminal that hung up
            _log.warning("stdin can't be read: %s", error.strerror)
            return b""

    async def _deliver(
        self,
        lines: Sequence[bytes],
        to_server: MemoryObjectSendStream[SessionMessage | Exception],
        answers: Outgoing,
    ) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # it has ended
            for line in lines:
                if not line.strip():
                    continue
                try:
                    message = parse(line)
                except MalformedLineError as error:
                    await answers.send(SessionMessage(error.answer))
                else:
                    await to_server.send(self._accept(message))

    def _accept(self, message: types.JSONRPCMessage) -> SessionMessage:
        if not isinstance(message, types.JSONRPCRequest):
            return SessionMessage(message)

        async def settle() -> None:
            self._settle(message.id)

        self._unanswered.add(message.id)
        if self._ends.is_set():
            self._late.add(message.id)
        return SessionMessage(message, ServerMessageMetadata(on_request_unanswered=settle))

    def _settle(self, request_id: types.RequestId | None) -> None:
        if request_id is not None:
            self._unanswered.discard(request_id)
        self._settled.set()

    async def _write(self, from_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
        limiter = anyio.CapacityLimiter(1)
        async for carried in from_server:
            message = carried.message
            if not self._broken:
                data = render(message)
                try:
                    await anyio.to_thread.run_sync(
                        _write_all, self._writing, data, abandon_on_cancel=True, limiter=limiter
                    )
                except OSError:  # nobody is there to be told
                    self._broken = True
                    self._ends.set()
            if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                self._settle(message.id)

    async def _heed_signals(self) -> None:
        heeded = [signal.SIGTERM, signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup leaves it
            heeded.append(signal.SIGHUP)
        with anyio.open_signal_receiver(*heeded) as signals:
            async for _ in signals:
                self._ends.set()

    async def _end(
        self, to_server: MemoryObjectSendStream[SessionMessage | Exception], grace_s: float
    ) -> None:
        await self._ends.wait()
        with anyio.move_on_after(grace_s):
            while self._unanswered:
                self._settled = anyio.Event()
                await self._settled.wait()
        if self._unanswered:
            _log.warning("left with %d requests unanswered", len(self._unanswered))
            os._exit(1)
        to_server.close()


class MalformedLineError(Exception):
    """A line is no message of the protocol.

    Attributes:
        answer: what its sender should hear.
    """

    def __init__(self, code: int, message: str, request_id: types.RequestId | None = None) -> None:
        super().__init__(message)
        error = types.ErrorData(code=code, message=message)
        self.answer = types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)


def parse(line: bytes) -> types.JSONRPCMessage:
    """Return the message of a line.

    More is understood than the SDK understands: bytes that are no UTF-8, lone surrogates, and whole
    numbers of more digits than Python converts, as infinity. A request whose id is none, which the
    SDK takes for a notification, is refused, since somebody waits for the answer.

    Raises:
        MalformedLineError: it holds none.
    """
    with suppress(ValidationError):
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        if not isinstance(message, types.JSONRPCNotification) or b'"id"' not in line:
            return message
    try:
        found = json.loads(line.decode(errors="replace"), parse_int=_whole)
    except (ValueError, RecursionError):
        raise MalformedLineError(types.PARSE_ERROR, "the line is no JSON") from None
    has_id = isinstance(found, dict) and "id" in found
    with suppress(ValidationError):
        message = types.jsonrpc_message_adapter.validate_python(found, by_name=False)
        if not isinstance(message, types.JSONRPCNotification) or not has_id:
            return message
    request_id = found["id"] if has_id and "method" in found else None
    if isinstance(request_id, bool) or not isinstance(request_id, str | int):
        request_id = None
    raise MalformedLineError(types.INVALID_REQUEST, "the line is no JSON-RPC message", request_id)


def render(message: types.JSONRPCMessage) -> bytes:
    """Return a message as one line; lone surrogates that a client sent come back escaped."""
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        return text.encode() + b"\n"
    except ValueError:
        return json.dumps(message.model_dump(by_alias=True, exclude_unset=True)).encode() + b"\n"


def _whole(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:  # Python refuses more than some thousand digits
        return float(digits)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
