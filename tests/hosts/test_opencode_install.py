"""OpenCode itself with what `install opencode` made, in the place of the original plugin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.hosts.opencode import OpenCode
from tests.hosts.proof import PLAIN, desk
from tests.hosts.scripted import ScriptedModel, script

NAMES = ["journal_read", "journal_search", "journal_write"]
ORIGINAL = """
// It would read agent-memory.json, and offers what the original does.
export const Memory = async () => ({
  tool: { journal_write: { description: "THE ORIGINAL", args: {}, execute: async () => "lost" } },
})
"""
PROBE = """
import { appendFileSync } from "node:fs"
export const Probe = async () => { appendFileSync(process.env.SEEN, "NAME\\n"); return {} }
"""


def offered(model: ScriptedModel, since: int = 0) -> list[str]:
    """Return the journal's tools that models were offered."""
    requests = model.requests[since:]
    return sorted({name for each in requests for name in each.tools if "journal" in name})


def test_the_journal_takes_the_originals_place(
    programs: Path, host_home: Path, model: ScriptedModel
) -> None:
    """The original is named, put aside, and no longer loaded; ours works until it is removed."""
    place = desk(host_home, programs)
    opencode = OpenCode(programs / "opencode", host_home, model)
    plugins = opencode.folder / "plugins"
    plugins.mkdir()
    (plugins / "memory.js").write_text(ORIGINAL, encoding="utf-8")
    opencode.run("Hello", project=place.project)
    assert offered(model) == ["journal_write"]
    assert "THE ORIGINAL" in model.wire

    with pytest.raises(AssertionError, match=f"loads opencode-agent-memory \\({plugins}"):
        place.install("opencode")
    place.journal("install", "opencode", "--replace")
    assert place.state("opencode") == "installed"
    assert place.install("opencode")["done"] == []
    asked = len(model.requests)
    prompt = script(("journal_write", PLAIN), ("journal_search", {"text": "licence"}))
    opencode.run(prompt, project=place.project)
    assert offered(model, asked) == NAMES
    assert all("THE ORIGINAL" not in request.text for request in model.requests[asked:])
    entry_id, facts, body = place.entry()
    assert (facts["agent"], facts["project"], body) == (
        "build", str(place.project), PLAIN["body"],
    )  # fmt: skip
    assert entry_id in model.results[1]

    place.journal("uninstall", "opencode")
    asked = len(model.requests)
    opencode.run("Hello", project=place.project)
    assert offered(model, asked) == []


@pytest.mark.prove
@pytest.mark.parametrize("own", ["config.json", "opencode.json", "opencode.jsonc"])
def test_opencode_loads_plugins_from_where_they_are_looked_for(
    programs: Path, host_home: Path, model: ScriptedModel, own: str
) -> None:
    """The folders, endings and configuration files that `install` goes through.

    Of its own files in one folder the last that lists plugins counts, so each is tried alone.
    """
    place = desk(host_home, programs)
    config, named = host_home / ".config" / "opencode", host_home / "named"
    folders = [config, host_home / ".opencode", named, place.project / ".opencode"]
    loaded, listed = [], [config / own, host_home / "one.json"]
    for folder in folders:
        for name in ("plugin/a.js", "plugins/b.ts", "plugins/c.mjs", "plugins/deep/d.js"):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(PROBE.replace("NAME", str(path)), encoding="utf-8")
            loaded += [str(path)] if path.name in ("a.js", "b.ts") else []
    for folder in (*folders[1:], place.project):
        listed += [folder / "opencode.json", folder / "opencode.jsonc"]
    for number, path in enumerate(listed):
        path.write_text(f'{{"plugin": ["/gone/{number}.js"]}} // x', encoding="utf-8")
    deep = place.project / "src"
    deep.mkdir()
    environ = {
        **OpenCode(programs / "opencode", host_home, model).environment(deep),
        "OPENCODE_CONFIG": str(host_home / "one.json"),
        "OPENCODE_CONFIG_DIR": str(named),
        "SEEN": str(host_home / "seen"),
    }
    printed = place.run([programs / "opencode", "debug", "config"], environ=environ, folder=deep)
    seen = (host_home / "seen").read_text(encoding="utf-8").splitlines()
    assert sorted(seen) == sorted(loaded)
    specs = [str(each) for each in json.loads(printed)["plugin"]]
    missing = [
        str(path)
        for number, path in enumerate(listed)
        if not any(spec.endswith(f"/gone/{number}.js") for spec in specs)
    ]
    assert missing == []
