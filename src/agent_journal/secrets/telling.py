"""What is told of secrets: kinds and numbers, and never what they were."""

from __future__ import annotations

from collections.abc import Mapping

from agent_journal.model import Screening


def sentences(found: Screening) -> list[str]:
    """Say what was found in a draft, for whoever wrote it: kinds and numbers alone."""
    told = []
    if found.masked:
        told.append(
            f"{_listed(found.masked)} looked like secrets and were masked: [masked:KIND] stands in "
            "their place, and what they were is not in the journal"
        )
    if found.suspected:
        told.append(
            f"{_listed(found.suspected)} may be secrets and were left as they are; if they are, a "
            "person can remove them: agent-journal redact ID"
        )
    return told


def sentences_on_reason(found: Screening) -> list[str]:
    """Say what was found in the reason of a redaction, which nothing removes any more."""
    told = []
    if found.masked:
        told.append(
            f"{_listed(found.masked)} in the reason looked like secrets and were masked: "
            "[masked:KIND] stands in their place"
        )
    if found.suspected:
        told.append(
            f"{_listed(found.suspected)} in the reason may be secrets; it stays as it is, in the "
            "entry and in the ledger"
        )
    return told


def _listed(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items())
