"""What may happen to a draft with secrets."""

from __future__ import annotations

from typing import Literal, get_args

Policy = Literal["mask", "refuse", "allow"]
"""What happens to a draft with secrets: they are masked, it is refused, or it stays as it is."""

POLICIES: tuple[Policy, ...] = get_args(Policy)


def policy_called(text: str) -> Policy:
    """Return the policy of a name.

    Raises:
        ValueError: there is none.
    """
    for policy in POLICIES:
        if text == policy:
            return policy
    raise ValueError(f"is {text[:80]!r}; it must be one of: {', '.join(POLICIES)}")
