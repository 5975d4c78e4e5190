"""What is said of each thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "note", "problem"]
"""A note is for information, and nothing is wrong; of a problem something should be done."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one thing was found to be.

    Attributes:
        subject: what was looked at, in a word or two.
        level: see `Level`.
        message: how it is, in one lower-case sentence.
        advice: what to do about it; empty only when it is ok.
    """

    subject: str
    level: Level
    message: str
    advice: str = ""


def ok(subject: str, message: str) -> Verdict:
    """Return that a thing is as it should be."""
    return Verdict(subject, "ok", message)


def note(subject: str, message: str, advice: str) -> Verdict:
    """Return something worth knowing."""
    return Verdict(subject, "note", message, advice)


def problem(subject: str, message: str, advice: str) -> Verdict:
    """Return something that is wrong."""
    return Verdict(subject, "problem", message, advice)
