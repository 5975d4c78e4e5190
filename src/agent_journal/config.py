"""The shared ``agent-memory.json``, the environment and flags, made into one `Settings`.

Flags win over the environment, the environment over the file. A file that can't be used is reported
in `Settings.error` and then counts as absent, so that searching goes on while it is mended.
"""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from agent_journal.configfile import ConfigFile, read, require_clean
from agent_journal.errors import ConfigError
from agent_journal.jsontext import with_value
from agent_journal.model import fold_case
from agent_journal.models.places import Places, places
from agent_journal.recency import days_called, require_days
from agent_journal.secrets.policy import Policy, policy_called

_T = TypeVar("_T")
_OWN_MODELS = ("auto", "bundled", "none")
_TURNED_ON = """{
  "journal": {
    "enabled": true
  }
}
"""
_KEYS = frozenset(
    {
        ("cacheDir",),
        ("journal",),
        ("journal", "enabled"),
        ("journal", "tags"),
        ("journal", "tags", "name"),
        ("journal", "tags", "description"),
        ("journal", "folder"),
        ("journal", "index"),
        ("journal", "model"),
        ("journal", "recency"),
        ("journal", "secrets"),
    }
)


class SuggestedTag(NamedTuple):
    """A tag that agents are offered; the description may be empty."""

    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be configured, resolved; all paths are absolute.

    Attributes:
        folder: where the entries are; it need not exist.
        index_folder: where search indexes are kept; it need not exist.
        config_path: the file that was looked for; it need not exist.
        model: which embedder to use: one of `model_names`, or the path of a folder that holds one.
        enabled: whether agents get tools; the command line works either way.
        tags: suggested to agents, in the file's order; no two differ only in case.
        secrets: what happens to drafts that hold secrets.
        recency: newer entries are preferred a little, half as much after so many days; None is off.
        cache_dir: where the original keeps its model, when the file says so.
        folder_is_explicit: the folder was given by a flag or the environment, so that it is meant
            even when the file can't be read.
        error: why the file can't be used; then `enabled` is False and nothing in it counts.
        state_folder: where the log is kept; None when no home directory is known.
        model_places: where models are installed and looked for; None as above.
    """

    folder: Path
    index_folder: Path
    config_path: Path
    model: str = "auto"
    enabled: bool = False
    tags: tuple[SuggestedTag, ...] = ()
    cache_dir: Path | None = None
    folder_is_explicit: bool = False
    error: ConfigError | None = None
    secrets: Policy = "mask"
    recency: float | None = None
    state_folder: Path | None = None
    model_places: Places | None = None


def model_names() -> tuple[str, ...]:
    """Return the names of embedders.

    They are the original's once it is installed and else the bundled one, the one that is installed
    with us, none (words alone), and those that can be installed.
    """
    from agent_journal.models.catalogue import CATALOGUE  # noqa: PLC0415 - few ask for one of them

    return (*_OWN_MODELS, *(model.key for model in CATALOGUE))


def load_settings(
    environ: Mapping[str, str],
    *,
    journal: str | None = None,
    config: str | None = None,
    index: str | None = None,
    model: str | None = None,
    secrets: str | None = None,
) -> Settings:
    """Resolve flags, the environment and the configuration file into settings; nothing is created.

    A missing file is no error: the journal is then disabled. Empty variables count as unset, and
    the XDG ones also when they are relative. ``~`` is expanded; relative paths are meant from the
    working directory, or, within the file, from the file's folder.

    Args:
        environ: usually ``os.environ``: ``AGENT_JOURNAL_DIR``, ``_CONFIG``, ``_INDEX``, ``_MODEL``,
            ``_SECRETS``, ``_RECENCY``.
        journal: ``--journal``, the folder of the entries.
        config: ``--config``, another configuration file.
        index: ``--index``, the folder of search indexes.
        model: ``--embedding-model``, as `Settings.model`.
        secrets: ``--secrets``, one of `POLICIES`.

    Raises:
        ConfigError: a flag or a variable can't be used, or no home directory is known where one is
            needed. What is wrong in the file is never raised; see `Settings.error`.
    """
    given = _Given(environ)
    config_path = given.path("--config", config, "AGENT_JOURNAL_CONFIG") or (
        given.home() / ".config" / "opencode" / "agent-memory.json"
    )
    folder = given.path("--journal", journal, "AGENT_JOURNAL_DIR")
    index_folder = given.path("--index", index, "AGENT_JOURNAL_INDEX")
    chosen_model = given.model("--embedding-model", model, "AGENT_JOURNAL_MODEL")
    policy = given.policy("--secrets", secrets, "AGENT_JOURNAL_SECRETS")
    recency = given.parsed("", None, "AGENT_JOURNAL_RECENCY", days_called)
    error = None
    try:
        said = _interpret(read(config_path, _KEYS), given)
    except ConfigError as found:
        said, error = _Said(), found
    return Settings(
        folder=folder or said.folder or given.home() / ".config" / "opencode" / "journal",
        index_folder=index_folder or said.index or given.xdg("XDG_CACHE_HOME", ".cache"),
        config_path=config_path,
        model=chosen_model or said.model or "auto",
        enabled=said.enabled,
        tags=said.tags,
        cache_dir=said.cache_dir,
        folder_is_explicit=folder is not None,
        secrets=policy or said.secrets or "mask",
        recency=recency or said.recency,
        error=error,
        state_folder=given.state_folder(),
        model_places=given.model_places(said.cache_dir),
    )


def turned_on(path: Path) -> str | None:
    """Return what a configuration file has to hold for agents to get tools; None if it does.

    Everything else in it stays as it is, byte for byte. Nothing is written.

    Raises:
        ConfigError: the file is there and can't be used.
    """
    file = read(path, _KEYS)
    if file is None or not file.get((), dict):
        return _TURNED_ON
    file.get(("journal",), dict)
    if file.get(("journal", "enabled"), bool):
        return None
    return with_value(file.source, ("journal", "enabled"), "true")


def model_called(text: str, environ: Mapping[str, str]) -> str:
    """Return the model that a text names, in the form of `Settings.model`.

    Args:
        text: a name, or the path of a folder, relative to the working directory.
        environ: usually ``os.environ``.

    Raises:
        ValueError: there is no such model.
        ConfigError: it is a path in the home directory, and none is known.
    """
    return _Given(environ).model_called(text, Path())


def with_model(path: Path, model: str) -> str | None:
    """Return what a configuration file has to hold for a model to be used; None if it does.

    Everything else in it stays as it is, byte for byte. Nothing is written.

    Raises:
        ConfigError: the file is there and can't be used.
    """
    file = read(path, _KEYS)
    if file is None or not file.get((), dict):
        return json.dumps({"journal": {"model": model}}, indent=2) + "\n"
    file.get(("journal",), dict)
    if file.text(("journal", "model")) == model:
        return None
    return with_value(file.source, ("journal", "model"), json.dumps(model))


@dataclass(frozen=True, slots=True)
class _Said:
    """What a configuration file says; None where it says nothing."""

    folder: Path | None = None
    index: Path | None = None
    model: str | None = None
    enabled: bool = False
    tags: tuple[SuggestedTag, ...] = ()
    cache_dir: Path | None = None
    secrets: Policy | None = None
    recency: float | None = None


class _Given(NamedTuple):
    """The environment and flags, read with errors that name where a value comes from."""

    environ: Mapping[str, str]

    def path(self, flag: str, value: str | None, variable: str) -> Path | None:
        return self.parsed(flag, value, variable, lambda text: self.expand(text, Path()))

    def model(self, flag: str, value: str | None, variable: str) -> str | None:
        return self.parsed(flag, value, variable, lambda text: self.model_called(text, Path()))

    def policy(self, flag: str, value: str | None, variable: str) -> Policy | None:
        return self.parsed(flag, value, variable, policy_called)

    def parsed(
        self, flag: str, value: str | None, variable: str, parse: Callable[[str], _T]
    ) -> _T | None:
        origin, text = (
            (flag, value) if value is not None else (variable, self.environ.get(variable) or None)
        )
        try:
            return None if text is None else parse(text)
        except ValueError as error:
            raise ConfigError(origin, "", str(error)) from None

    def home(self) -> Path:
        """Return the home directory.

        Raises:
            ConfigError: neither HOME nor the user database names one.
        """
        home = Path(self.environ.get("HOME", ""))
        if home.is_absolute():
            return home
        try:
            return Path(pwd.getpwuid(os.getuid()).pw_dir)
        except KeyError:
            reason = (
                "is not set and the user database names no home directory; set it, or give "
                "AGENT_JOURNAL_CONFIG, AGENT_JOURNAL_DIR and AGENT_JOURNAL_INDEX"
            )
            raise ConfigError("HOME", "", reason) from None

    def xdg(self, variable: str, default: str) -> Path:
        """Return our folder within one of the XDG base directories."""
        base = Path(self.environ.get(variable, ""))
        return (base if base.is_absolute() else self.home() / default) / "agent-journal"

    def state_folder(self) -> Path | None:
        try:
            return self.xdg("XDG_STATE_HOME", ".local/state")
        except ConfigError:
            return None  # a log is no reason to refuse to work

    def model_places(self, cache_dir: Path | None) -> Places | None:
        try:
            own = self.xdg("XDG_CACHE_HOME", ".cache") / "models"
            return places(self.environ, own=own, cache_dir=cache_dir, home=self.home())
        except ConfigError:
            return None  # models by name can't be had then, which is told when one is wanted

    def model_called(self, text: str, base: Path) -> str:
        """Return the model that a text names, in the form of `Settings.model`.

        Raises:
            ValueError: there is no such model.
            ConfigError: as `expand`.
        """
        if text in _OWN_MODELS:
            return text
        from agent_journal.models.catalogue import described  # noqa: PLC0415 - as above

        if known := described(text):
            return known.key
        if "/" in text or text.startswith(("~", ".")):
            return str(self.expand(text, base))
        names = ", ".join(model_names())
        raise ValueError(f"is {text[:80]!r}; it must be one of: {names}, or the path of a folder")

    def expand(self, text: str, base: Path) -> Path:
        """Make a path absolute.

        Raises:
            ValueError: it is empty, no file can have such a name, it names an unknown user, or it
                is relative and there is no working directory.
            ConfigError: it starts with a tilde and no home directory is known.
        """
        if not text.strip():
            raise ValueError("is empty; give a path")
        require_clean(text)
        try:
            if text.startswith("~"):
                user, _, rest = text[1:].partition("/")
                home = Path(pwd.getpwnam(user).pw_dir) if user else self.home()
                return home / rest.lstrip("/")
            return (base / text).absolute()
        except KeyError:
            raise ValueError(f"names the unknown user {user!r}") from None
        except OSError as error:
            reason = f"is relative, and the working directory is gone: {error.strerror}"
            raise ValueError(reason) from None


def _interpret(file: ConfigFile | None, given: _Given) -> _Said:
    """Check everything of ours in a file; unknown keys are left alone.

    Raises:
        ConfigError: something is wrong; the first thing found.
    """
    if file is None:
        return _Said()

    def parsed(parse: Callable[[str], _T], *where: str) -> _T | None:
        text = file.text(where)
        try:
            return None if text is None else parse(text)
        except ValueError as error:
            file.fail(where, str(error))

    def expanded(text: str) -> Path:
        return given.expand(text, file.path.parent)

    file.get((), dict)
    file.get(("journal",), dict)
    days = file.get(("journal", "recency"), float)
    try:
        recency = None if days is None else require_days(days)
    except ValueError as error:
        file.fail(("journal", "recency"), str(error))
    return _Said(
        model=parsed(lambda text: given.model_called(text, file.path.parent), "journal", "model"),
        secrets=parsed(policy_called, "journal", "secrets"),
        recency=recency,
        folder=parsed(expanded, "journal", "folder"),
        index=parsed(expanded, "journal", "index"),
        enabled=file.get(("journal", "enabled"), bool) or False,
        tags=_suggested_tags(file),
        cache_dir=parsed(expanded, "cacheDir"),
    )


def _suggested_tags(file: ConfigFile) -> tuple[SuggestedTag, ...]:
    tags: dict[str, SuggestedTag] = {}
    for number in range(len(file.get(("journal", "tags"), list) or [])):
        where = ("journal", "tags", number)
        file.get(where, dict)
        name = " ".join((file.text((*where, "name")) or "").split())
        if not name:
            file.fail((*where, "name"), "is missing or empty; give the tag a name")
        description = " ".join((file.text((*where, "description")) or "").split())
        tags.setdefault(fold_case(name), SuggestedTag(name, description))
    return tuple(tags.values())
