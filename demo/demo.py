"""The main job, end to end, in a temporary journal: as a person and then as an agent.

Everything printed is the real output of the installed command and of a real MCP client. Each step
checks what it got, so that the demonstration fails when the product does.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp import Client

COMMAND = str(Path(sysconfig.get_path("scripts")) / "agent-journal")
BOLD, DIM, RESET = ("\033[1m", "\033[2m", "\033[0m") if sys.stdout.isatty() else ("", "", "")
PATIENCE_S = 60

LONG_BODY = "\n\n".join(
    f"## Service {number}\n\nThe service number {number} reads its settings at start, answers on "
    "a port of its own and writes one line per minute to the log."
    for number in range(1, 120)
)
LONG_BODY += """

## Backups

Every night at three a dump of the customer database is saved to the vault in the cellar. Copies are
kept for thirty days; the monthly ones go to the bank's safe.

Restoring a copy takes forty minutes: stop the services, load the dump, replay the log, and compare
the number of customers with the one in the evening report before anybody is let in again. The key
of the vault hangs in the office of the night watch, and taking it has to be written down."""
ENTRIES = [
    {
        "title": "Checkout fails with E_STALE_CART after a deploy",
        "body": "The cache kept carts of the old schema. Bump CART_SCHEMA_VERSION with each change "
        "of the cart's fields, then the old ones are dropped.",
        "tags": "bug,cache",
        "project": "/srv/orchid-shop",
    },
    {
        "title": "Le prove automatiche falliscono solo di notte",
        "body": "Il fuso orario del server cambia la data attesa: nei test fissare l'orologio con "
        "`freeze_time` e usare sempre UTC.",
        "tags": "bug,test",
        "project": "/srv/gestionale",
    },
    {
        "title": "Decisione: niente ORM nel servizio fatture",
        "body": "Le interrogazioni sono poche e complesse; scriviamo SQL a mano e lo proviamo "
        "su un database vero.",
        "tags": "decisione",
        "project": "/srv/gestionale",
    },
    {
        "title": "The user wants short commit messages",
        "body": "One line in the imperative, at most sixty characters, no emoji.",
        "tags": "preference",
        "project": "/srv/orchid-shop",
    },
    {
        "title": "Tour of the platform for the next agent",
        "body": LONG_BODY,
        "tags": "tour",
        "project": "/srv/platform",
    },
]
FLAKY, NO_ORM, TOUR = ENTRIES[1]["title"], ENTRIES[2]["title"], ENTRIES[4]["title"]


def say(text: str) -> None:
    """Print a headline."""
    print(f"\n{BOLD}{text}{RESET}", flush=True)


def expect(claim: bool, what: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Stop the demonstration when something isn't as promised."""
    if not claim:
        sys.exit(f"demo failed: {what}")


def run(*arguments: str, stdin: str = "") -> str:
    """Run the command as a person would, show it, and return what it printed."""
    shown = " ".join(a if a.isascii() and " " not in a else f'"{a}"' for a in arguments)
    print(f"{DIM}$ agent-journal {shown}{RESET}", flush=True)
    done = subprocess.run(
        [COMMAND, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
    )
    print("\n".join(f"  {line}" for line in done.stdout.rstrip().splitlines()[:14]), flush=True)
    expect(done.returncode == 0, f"exit code {done.returncode}: {done.stderr}")
    return done.stdout


def top(*arguments: str) -> dict[str, object]:
    """Search as a program would and return the first hit."""
    done = subprocess.run(
        [COMMAND, "search", *arguments, "--json"], capture_output=True, check=True
    )
    page = json.loads(done.stdout)
    expect(bool(page["hits"]), f"nothing found for {arguments}")
    expect(page["mode"] == "hybrid" or "--tag" in arguments, f"not by meaning: {page['reason']}")
    return dict(page["hits"][0])


def as_a_person() -> None:
    """Write, find and read from the command line."""
    say("1. Write five entries: English, Italian, and one of 20,000 characters")
    for entry in ENTRIES:
        arguments = ["write", entry["title"], "--project", entry["project"], "--tag", entry["tags"]]
        run(*arguments, stdin=entry["body"])
    run("reindex")

    say("2. Find by meaning, across languages: an English question, an Italian answer")
    run("search", "tests are flaky because of the time zone", "--limit", "2")
    found = top("tests are flaky because of the time zone")
    expect(found["title"] == FLAKY, f"the Italian entry should come first, not {found['title']}")

    say("   ... and an Italian question, in the middle of an English text of 20,000 characters")
    run("search", "dove vengono salvate le copie del database dei clienti?", "--limit", "2")
    found = top("dove vengono salvate le copie del database dei clienti?")
    expect(found["title"] == TOUR, f"the long entry should come first, not {found['title']}")

    say("3. Find by an exact identifier")
    run("search", "E_STALE_CART", "--limit", "1")
    expect(top("E_STALE_CART")["title"] == ENTRIES[0]["title"], "the identifier's entry")

    say("4. Find by tag and project")
    run("search", "--tag", "decisione", "--project", "gestionale")
    found = top("--tag", "decisione", "--project", "gestionale")
    expect(found["title"] == NO_ORM, f"the decision, not {found['title']}")

    say("5. Read it whole")
    expect("SQL a mano" in run("read", str(found["id"])), "the body")


async def as_an_agent() -> None:
    """Do the same through a real MCP client over stdio."""
    from mcp import Client, StdioServerParameters

    server = StdioServerParameters(command=COMMAND, args=["mcp"], env=dict(os.environ))
    failure = None
    async with Client(server) as client:
        try:
            await use_tools(client)
        except SystemExit as failed:  # raised in here, the client would wrap it in groups
            failure = failed
    if failure:
        raise failure


async def use_tools(client: Client) -> None:
    """Call each tool and check what comes back."""
    tools = (await client.list_tools()).tools
    say("6. As an agent, through an MCP client: " + ", ".join(tool.name for tool in tools))

    async def ask(name: str, arguments: dict[str, object]) -> str:
        result = await client.call_tool(name, arguments)
        text = "\n".join(getattr(part, "text", "") for part in result.content)
        expect(not result.is_error, text)
        return text

    async def call(name: str, *, with_vectors: bool = False, **arguments: object) -> str:
        print(f"{DIM}-> {name} {json.dumps(arguments, ensure_ascii=False)}{RESET}", flush=True)
        text = await ask(name, arguments)
        begun = time.monotonic()
        while with_vectors and ("Backlog:" in text or "Mode: lexical" in text):
            # An entry can be found by words at once, by meaning a moment later.
            expect(time.monotonic() - begun < PATIENCE_S, f"no vectors within {PATIENCE_S} s")
            await asyncio.sleep(0.2)
            text = await ask(name, arguments)
        print("\n".join(f"  {line}" for line in text.splitlines()[:12]), flush=True)
        return text

    written = await call(
        "journal_write",
        title="Il pool di connessioni si esaurisce sotto carico",
        body="Ogni richiesta apriva due connessioni; ora una sola, chiusa in `finally`.",
        tags="bug,database",
    )
    expect("Il pool" in written, "the title comes back")
    question = "requests hang because no database connection is free"
    by_meaning = await call("journal_search", with_vectors=True, text=question, limit=1)
    expect("Il pool" in by_meaning, "the Italian entry is found by an English question")
    expect("E_STALE_CART" in await call("journal_search", text="E_STALE_CART", limit=1), "id")
    filtered = await call("journal_search", tags="decisione", project="gestionale")
    expect(NO_ORM in filtered, "the decision is found by tag and project")
    entry_id = re.findall(r"\d{8}-\d{6}-\d{3}", written)[0]
    expect("finally" in await call("journal_read", id=entry_id), "the body")


def main() -> None:
    """Run everything in a temporary home and remove it."""
    home = Path(tempfile.mkdtemp(prefix="agent-journal-demo-"))
    config = home / "agent-memory.json"
    config.write_text('{"journal": {"enabled": true}}', encoding="utf-8")
    os.environ |= {
        "AGENT_JOURNAL_DIR": str(home / "journal"),
        "AGENT_JOURNAL_CONFIG": str(config),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_STATE_HOME": str(home / "state"),
        "PYTHONUTF8": "1",
    }
    try:
        as_a_person()
        asyncio.run(as_an_agent())
    finally:
        shutil.rmtree(home)
    say("Everything was found. The temporary journal is gone again.")


if __name__ == "__main__":
    main()
