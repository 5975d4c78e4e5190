"""The scripted model answers as the three protocols want, one step of its script at a time."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
from tests.hosts.scripted import DONE, TITLE, ScriptedModel, script

Json = dict[str, Any]

PROMPT = "Do this.\n" + script(
    ("first", {"a": 1}), [("second", {}), ("third", {"text": "CALL x"})], ("fourth", {})
)


def ask(model: ScriptedModel, path: str, body: Json) -> list[Json]:
    """Send a request, and return the events of the answer."""
    request = urllib.request.Request(f"{model.url}{path}", json.dumps(body).encode())  # noqa: S310 - http
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - as above
        lines = answer.read().decode().splitlines()
    found = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [json.loads(line) for line in found if line != "[DONE]"]


class Chat:
    """OpenAI's older protocol."""

    path = "/v1/chat/completions"

    def body(self, history: list[Json], tools: list[str]) -> Json:
        offered = [{"type": "function", "function": {"name": name}} for name in tools]
        return {"messages": history, **({"tools": offered} if tools else {})}

    def user(self, text: str) -> list[Json]:
        return [{"role": "user", "content": [{"type": "text", "text": text}]}]

    def calls(self, events: list[Json]) -> list[tuple[str, Json]]:
        deltas = [event["choices"][0]["delta"] for event in events]
        made = [call["function"] for delta in deltas for call in delta.get("tool_calls", [])]
        return [(call["name"], json.loads(call["arguments"])) for call in made]

    def text(self, events: list[Json]) -> str:
        return "".join(event["choices"][0]["delta"].get("content", "") for event in events)

    def called(self, names: list[str], results: list[str]) -> list[Json]:
        calls = [{"id": name, "function": {"name": name}} for name in names]
        given = [{"role": "tool", "tool_call_id": "x", "content": text} for text in results]
        return [{"role": "assistant", "tool_calls": calls}, *given]


class Messages(Chat):
    """Anthropic's protocol."""

    path = "/v1/messages"

    def body(self, history: list[Json], tools: list[str]) -> Json:
        return {"messages": history, "tools": [{"name": name} for name in tools]}

    def calls(self, events: list[Json]) -> list[tuple[str, Json]]:
        names = [e["content_block"]["name"] for e in events if "name" in e.get("content_block", {})]
        deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
        given = [json.loads(delta["partial_json"]) for delta in deltas if "partial_json" in delta]
        return list(zip(names, given, strict=True))

    def text(self, events: list[Json]) -> str:
        return "".join(event.get("delta", {}).get("text", "") for event in events)

    def called(self, names: list[str], results: list[str]) -> list[Json]:
        used = [{"type": "tool_use", "name": name} for name in names]
        given: list[Json] = [
            {"type": "tool_result", "content": [{"type": "text", "text": text}]} for text in results
        ]
        return [{"role": "assistant", "content": used}, {"role": "user", "content": given}]


class Responses(Chat):
    """OpenAI's newer protocol."""

    path = "/v1/responses"

    def body(self, history: list[Json], tools: list[str]) -> Json:
        return {"input": history, "tools": [{"name": name} for name in tools]}

    def calls(self, events: list[Json]) -> list[tuple[str, Json]]:
        items = [e["item"] for e in events if e["type"] == "response.output_item.done"]
        made = [item for item in items if item["type"] == "function_call"]
        return [(item["name"], json.loads(item["arguments"])) for item in made]

    def text(self, events: list[Json]) -> str:
        output = events[-1]["response"]["output"]
        return "".join(part["text"] for item in output for part in item.get("content", []))

    def called(self, names: list[str], results: list[str]) -> list[Json]:
        calls = [{"type": "function_call", "name": name} for name in names]
        return calls + [{"type": "function_call_output", "output": text} for text in results]


@pytest.mark.parametrize("protocol", [Chat(), Messages(), Responses()])
def test_a_script_runs_step_by_step(model: ScriptedModel, protocol: Chat) -> None:
    """Each answer runs the next step, parallel calls together; then it is done."""
    history = protocol.user("earlier\nCALL never {}") + protocol.user(PROMPT)
    seen: list[list[tuple[str, Json]]] = []
    for _ in range(3):
        events = ask(model, protocol.path, protocol.body(history, ["first", "second"]))
        seen.append(protocol.calls(events))
        names = [name for name, _ in seen[-1]]
        history += protocol.called(names, [f"from {name}" for name in names])
    events = ask(model, protocol.path, protocol.body(history, ["first"]))
    assert seen == [
        [("first", {"a": 1})],
        [("second", {}), ("third", {"text": "CALL x"})],
        [("fourth", {})],
    ]
    assert (protocol.calls(events), protocol.text(events)) == ([], DONE)
    assert model.results == ["from first", "from second", "from third", "from fourth"]
    assert model.requests[0].tools == ["first", "second"]


@pytest.mark.parametrize("protocol", [Chat(), Messages(), Responses()])
def test_without_tools_the_answer_is_a_title(model: ScriptedModel, protocol: Chat) -> None:
    """A request for a title holds the script too, and must not run it."""
    events = ask(model, protocol.path, protocol.body(protocol.user(PROMPT), []))
    assert (protocol.calls(events), protocol.text(events)) == ([], TITLE)
    assert model.conversations == []
    assert "fourth" in model.wire


def test_a_script_that_was_given_needs_no_prompt(model: ScriptedModel) -> None:
    """Prompts can be silent then, and what was sent before the first call is known."""
    model.script = script(("first", {}))
    protocol = Chat()
    history = protocol.user("hello")
    events = ask(model, protocol.path, protocol.body(history, ["first"]))
    assert protocol.calls(events) == [("first", {})]
    history += [*protocol.called(["first"], ["a result"]), *protocol.user("CALL never {}")]
    events = ask(model, protocol.path, protocol.body(history, ["first"]))
    assert protocol.text(events) == DONE
    assert "hello" in model.openings
    assert "a result" not in model.openings


def test_a_name_with_a_namespace_is_split(model: ScriptedModel) -> None:
    """Codex calls the tools of a server in the server's namespace."""
    space = {"type": "namespace", "name": "mcp__x", "tools": [{"name": "read"}]}
    body = {"input": Responses().user('CALL mcp__x::read {"id": "1"}'), "tools": [space]}
    events = ask(model, "/v1/responses", body)
    (call,) = [e["item"] for e in events if e["type"] == "response.output_item.done"]
    assert (call["namespace"], call["name"]) == ("mcp__x", "read")
    assert model.requests[0].tools == ["mcp__x::read"]
