"""A model endpoint on loopback that does what the prompt says, and keeps what hosts sent to it.

It speaks OpenAI's chat/completions and /responses and Anthropic's /messages, as event streams.
Lines of the newest prompt that has such lines are the script, one step each:

    CALL journal_search {"text": "cache"}
    CALL journal_read {"id": "a"} || CALL journal_read {"id": "b"}

Each answer runs the next step, parallel calls together; after the last one it is the text `DONE`.
A script that the endpoint was given takes the place of all prompts, so that these can be silent.
A name `space::tool` calls a tool in a namespace, which /responses has.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, Self

DONE = "DONE"
TITLE = "A title"
"""What is answered where no tools were offered: hosts ask for titles so."""

Json = dict[str, Any]  # whatever a host sends
Turn = tuple[str, str]  # "user" and what was typed, "calls" or "result" and what a tool gave
Step = list[tuple[str, Json]]
Call = tuple[str, Mapping[str, object]]  # a tool's name and arguments

_CALL = re.compile(r"CALL (\S+)\s*(\{.*\})?$")
_USAGE = {"input_tokens": 10, "output_tokens": 5}
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a host, as it came.

    Attributes:
        path: without the host's name, with the query.
        text: the body before it was parsed: what a wire would show.
    """

    path: str
    headers: Mapping[str, str]
    text: str

    @property
    def body(self) -> Json:
        """The body as JSON."""
        body: Json = json.loads(self.text)
        return body

    @property
    def tools(self) -> list[str]:
        """The names of the tools that the model is offered; those of a namespace behind its own."""
        return [name for tool in self.body.get("tools") or [] for name in _names(tool)]

    @property
    def results(self) -> list[str]:
        """What tools have given so far in this conversation, in order."""
        return [text for kind, text in _turns(self.body) if kind == "result"]


class ScriptedModel:
    """The endpoint; a context manager that serves in threads of its own.

    Attributes:
        requests: what models were asked, in order; each is complete.
        others: what else was asked for.
        script: what is done instead of what prompts say, unless empty.
    """

    def __init__(self) -> None:
        self.script = ""
        self.requests: list[Request] = []
        self.others: list[Request] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> Self:
        """Begin to serve."""
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop serving; requests in hand are not waited for."""
        self._server.shutdown()
        self._thread.join()
        self._server.socket.close()

    @property
    def url(self) -> str:
        """Where it is, without a path: `/v1/...` is answered."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def conversations(self) -> list[Request]:
        """The requests that offered tools: all but those for titles and the like."""
        return [request for request in self.requests if request.tools]

    @property
    def wire(self) -> str:
        """All that models were sent, to look for what must not be in it."""
        return "\n".join(request.text for request in self.requests)

    @property
    def openings(self) -> str:
        """All that models were sent before they had called anything."""
        silent = (each for each in self.requests if all(k == "user" for k, _ in _turns(each.body)))
        return "\n".join(request.text for request in silent)

    @property
    def results(self) -> list[str]:
        """What tools gave in the last conversation."""
        return self.conversations[-1].results if self.conversations else []


def script(*steps: Call | Sequence[Call]) -> str:
    """Return the prompt that has tools called one after the other, those in a list together."""
    lines = []
    for step in steps:
        calls = step if isinstance(step, list) else [step]
        lines.append(" || ".join(f"CALL {name} {json.dumps(given)}" for name, given in calls))
    return "\n".join(lines)


def _names(tool: Json) -> list[str]:
    if tool.get("type") == "namespace":
        return [f"{tool['name']}::{name}" for each in tool["tools"] for name in _names(each)]
    name = tool.get("name") or tool.get("function", {}).get("name") or tool.get("type")
    return [str(name)]


# --- what was said so far, in the three protocols -------------------------------------------------


def _turns(body: Json) -> Iterator[Turn]:
    for message in body.get("messages") or body.get("input") or []:
        if isinstance(message, dict):
            yield from _message_turns(message)


def _message_turns(message: Json) -> Iterator[Turn]:
    role, content, kind = message.get("role"), message.get("content"), message.get("type")
    if kind in ("function_call", "custom_tool_call"):
        yield "calls", ""
    elif kind in ("function_call_output", "custom_tool_call_output"):
        yield "result", _text(message.get("output"))
    elif role == "tool":
        yield "result", _text(content)
    elif role == "assistant" and (message.get("tool_calls") or _parts(content, "tool_use")):
        yield "calls", ""
    elif role == "user":
        for part in _parts(content, "tool_result"):
            yield "result", _text(part.get("content"))
        if text := _text(content):
            yield "user", text


def _parts(content: object, kind: str) -> list[Json]:
    parts = content if isinstance(content, list) else []
    return [part for part in parts if isinstance(part, dict) and part.get("type") == kind]


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(
        str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part
    )


def _next_step(body: Json, script: str) -> Step:
    """Return the calls that are due, none at the end of the script."""
    steps = _steps(script)
    done = 0
    in_calls = False  # /responses lists parallel calls one by one
    for kind, text in _turns(body):
        if kind == "user" and not script and (found := _steps(text)):
            steps, done = found, 0
        if kind == "calls" and not in_calls:
            done += 1
        in_calls = kind == "calls"
    return steps[done] if body.get("tools") and done < len(steps) else []


def _steps(prompt: str) -> list[Step]:
    steps = []
    for line in prompt.splitlines():
        found = [_CALL.match(part) for part in line.strip().split(" || ")]
        if all(found):
            steps.append([(match[1], json.loads(match[2] or "{}")) for match in found if match])
    return steps


# --- answers, in the three protocols --------------------------------------------------------------


def _chat(body: Json, step: Step) -> Iterator[Json]:
    def chunk(delta: Json, finish: str | None = None) -> Json:
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": body.get("model"),
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            **({"usage": usage} if finish else {}),
        }

    yield chunk({"role": "assistant", "content": "" if step else _closing(body)})
    for index, (name, given) in enumerate(step):
        function = {"name": name, "arguments": json.dumps(given)}
        call = {"index": index, "id": _id("call"), "type": "function", "function": function}
        yield chunk({"tool_calls": [call]})
    yield chunk({}, "tool_calls" if step else "stop")


def _messages(body: Json, step: Step) -> Iterator[Json]:
    message: Json = {
        "id": _id("msg"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _USAGE,
    }
    yield {"type": "message_start", "message": message}
    blocks = [
        (
            {"type": "tool_use", "id": _id("toolu"), "name": name, "input": {}},
            {"type": "input_json_delta", "partial_json": json.dumps(given)},
        )
        for name, given in step
    ] or [({"type": "text", "text": ""}, {"type": "text_delta", "text": _closing(body)})]
    for index, (block, delta) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = {"stop_reason": "tool_use" if step else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": reason, "usage": _USAGE}
    yield {"type": "message_stop"}


def _responses(body: Json, step: Step) -> Iterator[Json]:
    response = {"id": _id("resp"), "object": "response", "status": "in_progress", "output": []}
    yield {"type": "response.created", "response": response}
    output: list[Json] = []
    for name, given in step:
        space, _, tool = name.rpartition("::")
        call = {"type": "function_call", "id": _id("fc"), "call_id": _id("call"), "name": tool}
        call |= {"arguments": json.dumps(given), "status": "completed"}
        output.append({**call, **({"namespace": space} if space else {})})
    if not output:
        said = {"type": "output_text", "text": _closing(body), "annotations": []}
        item = {"type": "message", "id": _id("m"), "role": "assistant", "status": "completed"}
        output.append({**item, "content": [said]})
    for index, item in enumerate(output):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    usage = {
        **_USAGE,
        "total_tokens": 15,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    done = {**response, "status": "completed", "output": output, "usage": usage}
    yield {"type": "response.completed", "response": done}


def _closing(body: Json) -> str:
    return DONE if body.get("tools") else TITLE


def _id(kind: str) -> str:
    return f"{kind}_{next(_numbers):012d}"


# --- HTTP -----------------------------------------------------------------------------------------

_PROTOCOLS = {
    "/v1/chat/completions": _chat,
    "/v1/messages": _messages,
    "/v1/responses": _responses,
}


def _handler(model: ScriptedModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(self.path, dict(self.headers), data.decode(errors="replace"))
            answer = _PROTOCOLS.get(self.path.partition("?")[0])
            if answer is None:
                model.others.append(request)
                self._send(json.dumps({"input_tokens": 10}), "application/json")
                return
            model.requests.append(request)
            lines = []
            body = request.body
            for event in answer(body, _next_step(body, model.script)):
                name = f"event: {event['type']}\n" if "type" in event else ""
                lines.append(f"{name}data: {json.dumps(event)}\n\n")
            if answer is _chat:
                lines.append("data: [DONE]\n\n")
            self._send("".join(lines), "text/event-stream")

        def do_GET(self) -> None:
            model.others.append(Request(self.path, dict(self.headers), ""))
            self._send(json.dumps({"object": "list", "data": [], "models": []}), "application/json")

        def _send(self, text: str, kind: str) -> None:
            data = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

        def log_message(self, *_arguments: object) -> None:
            """Say nothing: stderr is the test's."""

    return Handler
