"""Lines over descriptors: what is read, what is written, and how it ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import NamedTuple

import anyio
import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage

from agent_journal.faces.mcp.wire import READER, MalformedLineError, Wire, parse, render

BOUND_S = 20.0
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


class Pipes(NamedTuple):
    """What a wire reads, what feeds it, what receives from it, and what it writes to."""

    reading: FileIO
    feeding: FileIO
    receiving: FileIO
    writing: FileIO

    def wire(self) -> Wire:
        """Make a wire of the ends that are its."""
        return Wire(self.reading.fileno(), self.writing.fileno())


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    reading, feeding = os.pipe()
    receiving, writing = os.pipe()
    made = Pipes(FileIO(reading), FileIO(feeding, "w"), FileIO(receiving), FileIO(writing, "w"))
    yield made
    made.feeding.close()
    for thread in threading.enumerate():
        if thread.name == READER:
            thread.join(BOUND_S)
    for file in made:
        file.close()


async def drain(wire: Wire, answers: int = 0) -> list[types.JSONRPCMessage]:
    """Answer the first requests with nothing in particular; return all messages until the end."""
    got = []
    async with wire.open(grace_s=BOUND_S) as (incoming, outgoing), incoming, outgoing:
        async for carried in incoming:
            assert isinstance(carried, SessionMessage)
            got.append(carried.message)
            if isinstance(carried.message, types.JSONRPCRequest) and len(got) <= answers:
                answer = types.JSONRPCResponse(jsonrpc="2.0", id=carried.message.id, result={})
                await outgoing.send(SessionMessage(answer))
    return got


def test_requests_are_carried_and_answers_come_back(pipes: Pipes) -> None:
    """Lines arrive in order, however they are cut, the last one without its end too."""
    for piece in (PING[:10], PING[10:] + PING.replace(b"1,", b"2,")[:-1]):
        pipes.feeding.write(piece)
    pipes.feeding.close()
    got = anyio.run(drain, pipes.wire(), 2)
    assert [message.id for message in got if isinstance(message, types.JSONRPCRequest)] == [1, 2]
    lines = pipes.receiving.read(1000).splitlines()
    assert lines == [b'{"jsonrpc":"2.0","id":%d,"result":{}}' % number for number in (1, 2)]


def test_what_can_not_be_read_is_the_end(
    tmp_path: Path, pipes: Pipes, caplog: pytest.LogCaptureFixture
) -> None:
    """A descriptor that fails is like one that has ended, with a warning."""
    folder = os.open(tmp_path, os.O_RDONLY)
    assert anyio.run(drain, Wire(folder, pipes.writing.fileno())) == []
    os.close(folder)
    assert "stdin can't be read: Is a directory" in caplog.text


def test_lines_after_the_end_harm_nobody(pipes: Pipes, recwarn: pytest.WarningsRecorder) -> None:
    """The reading thread outlives the loop, and ends by itself with the next line."""

    async def leave() -> None:
        async with pipes.wire().open(grace_s=BOUND_S) as (incoming, outgoing):
            incoming.close()
            outgoing.close()

    anyio.run(leave)
    (reader,) = [thread for thread in threading.enumerate() if thread.name == READER]
    pipes.feeding.write(PING)
    reader.join(BOUND_S)
    assert not reader.is_alive()
    assert not recwarn.list


def test_the_end_after_the_loop_harms_nobody(pipes: Pipes) -> None:
    """The reading thread may find out last of all that stdin has ended."""

    async def leave() -> None:
        async with pipes.wire().open(grace_s=BOUND_S) as (incoming, outgoing):
            incoming.close()
            outgoing.close()

    anyio.run(leave)
    (reader,) = [thread for thread in threading.enumerate() if thread.name == READER]
    pipes.feeding.close()
    reader.join(BOUND_S)
    assert not reader.is_alive()


def test_answers_that_nobody_reads_are_dropped(pipes: Pipes) -> None:
    """The first one ends the wire; those after it count as given, so that nothing is waited for."""
    pipes.receiving.close()
    for number in (b"1,", b"2,", b"3,"):
        pipes.feeding.write(PING.replace(b"1,", number))
    got = anyio.run(drain, pipes.wire(), 3)
    assert len(got) == 3


@given(st.binary())
def test_any_line_is_a_message_or_malformed(line: bytes) -> None:
    """Nothing that arrives can do more than be refused, with an answer that can be sent."""
    try:
        message = parse(line)
    except MalformedLineError as error:
        message = error.answer
    assert parse(render(message)) == message


@given(st.text(), st.text(st.characters(categories=["Cs", "L"])))
def test_lines_carry_any_text(text: str, odd: str) -> None:
    """Line breaks stay inside of their line, and lone surrogates come back as they came."""
    message = types.JSONRPCResponse(jsonrpc="2.0", id=odd, result={"text": text})
    line = render(message)
    assert line.count(b"\n") == 1
    assert parse(line) == message


@pytest.mark.parametrize("odd", ["null", "1.5", "true", "{}", "[1]"])
def test_a_request_with_an_odd_id_is_refused(odd: str) -> None:
    """It is no notification: whoever sent it waits for an answer."""
    with pytest.raises(MalformedLineError) as caught:
        parse(b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % odd.encode())
    assert caught.value.answer.id is None
    assert caught.value.answer.error.code == types.INVALID_REQUEST


def test_an_id_within_a_notification_is_its_own_affair() -> None:
    """Only the message's own id makes a request of it."""
    message = parse(b'{"jsonrpc":"2.0","method":"x","params":{"id":1.5}}')
    assert isinstance(message, types.JSONRPCNotification)
    assert message.params == {"id": 1.5}


def test_a_number_of_many_digits_is_no_broken_line() -> None:
    """Python converts no more than some thousand digits; the request is answered all the same."""
    message = parse(b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"n":%s}}' % (b"9" * 5000))
    assert isinstance(message, types.JSONRPCRequest)
    assert (message.id, message.params) == (7, {"n": float("inf")})
