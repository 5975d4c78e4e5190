"""Which repository a folder belongs to, under a name that is the same on every machine.

The name is where the remote is; without a remote that others can reach it is the first commit's id.
What a URL holds beyond that is nobody's business: users and passwords, above all.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from contextlib import suppress
from functools import lru_cache
from urllib.parse import unquote

from agent_journal.faces.framing import is_plain

LIMIT_S = 1.0
"""How long git may take for a folder, in all."""

_LENGTH_LIMIT = 1000  # as of whatever else hosts tell
_FOLDERS_KEPT = 256
_KILLED_S = 0.1
_SCHEMES = {"ssh", "git+ssh", "ssh+git", "git", "http", "https", "git+http", "git+https", "ftp"}
_SCP = re.compile(r"(?:[^/\[\]:]*@)?(\[[^\]/]+\]|[^/\[\]:]{2,}):(.+)", re.DOTALL)
_HOST = re.compile(r"(\[[0-9a-f:.]*:[0-9a-f:.]*\]|[^\s/@:\[\]?#\\]+)(?::\d*)?")
_SSH_HOSTS = {  # of hosts whose ssh has a name of its own
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
    "ssh.dev.azure.com": "dev.azure.com",
}
_INHERITED = {  # of git's variables; the others may speak of another repository, as in a hook
    "GIT_CEILING_DIRECTORIES",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_EXEC_PATH",
}
_reading = threading.Lock()


def identity(folder: str) -> str:
    """Return the name of the repository around a folder; empty when there is none to be known.

    That is `normalised` of the remote ``origin``, else of the first remote by its name that has
    such a form; else the id of the oldest commit without parents, which a shallow clone lacks.
    git is asked once for each folder in the life of the process, and opens no connection.

    Args:
        folder: an absolute path; anything else belongs to no repository.
    """
    with _reading:
        return _read(folder)


def work_tree(folder: str) -> str:
    """Return the nearest folder upwards, by its real path, that holds ``.git``; empty without one.

    Args:
        folder: an absolute path, which need not exist; anything else lies in no work tree.
    """
    if not folder.startswith("/"):
        return ""
    try:
        here = os.path.realpath(folder)
        while not os.path.lexists(f"{here}/.git"):
            above = os.path.dirname(here)  # noqa: PTH120 - strings throughout
            if above == here:
                return ""
            here = above
    except (OSError, ValueError):  # a name that no file can have
        return ""
    return here


def normalised(url: str) -> str:
    """Return where a remote is, as ``host/path``; empty when it is nowhere but on this machine.

    All URLs of a repository give the same: the host in lower case; no scheme, user, password,
    port, query, fragment, or ``.git`` at the end.
    """
    scheme, is_url, rest = url.strip().partition("://")
    if is_url:
        authority, _, path = rest.partition("/")
    elif parts := _SCP.fullmatch(scheme):
        authority, path = parts[1], parts[2]
        if "@" in authority or not _HOST.fullmatch(authority.lower()):
            authority = authority.strip("[]")  # around a port: [git@host:22]:path
    else:
        return ""
    host = _HOST.fullmatch(authority.rpartition("@")[2].lower())
    if not host or (is_url and scheme.lower() not in _SCHEMES):
        return ""
    if "@" in unquote(path):  # before it stands a user, or the end of a password with a slash
        return ""
    path = re.split("[?#]", path, maxsplit=1)[0]
    return _joined(host[1].rstrip("."), unquote(path) if is_url else path)


def _joined(host: str, path: str) -> str:
    path = re.sub("/{2,}", "/", path).strip("/")
    if path.lower().endswith(".git"):
        path = path[: -len(".git")].rstrip("/")
    if host == "ssh.dev.azure.com":
        path = path.removeprefix("v3/")
    host = _SSH_HOSTS.get(host, host)
    if host == "dev.azure.com":
        path = path.replace("/_git/", "/", 1)
    name = f"{host}/{path}"
    # Before a second colon stands a program that git would run.
    is_odd = path.startswith(":") or not is_plain(name) or len(name) > _LENGTH_LIMIT
    return name if path and not is_odd else ""


@lru_cache(_FOLDERS_KEPT)
def _read(folder: str) -> str:
    if not work_tree(folder) and not _is_bare(folder):
        return ""  # git isn't even started: where it isn't installed, macOS would offer to do it
    ask = _Git(folder)
    with suppress(_NoAnswerError):
        return _remote(ask) or _first_commit(ask)
    return ""


def _is_bare(folder: str) -> bool:
    parts = ("HEAD", "objects", "refs")
    with suppress(ValueError):  # a name that no file can have
        return folder[:1] == "/" and all(os.path.lexists(f"{folder}/{part}") for part in parts)
    return False


def _remote(ask: _Git) -> str:
    urls: dict[str, str] = {}
    said = ask("config", "--local", "--includes", "-z", "--get-regexp", r"^remote\..*\.url$")
    for setting in said.split("\0"):
        key, _, url = setting.partition("\n")
        urls.setdefault(key[len("remote.") : -len(".url")], url)
    for name in sorted(urls, key=lambda name: (name != "origin", name)):
        found = normalised(urls[name])
        if not found or ("://" not in urls[name] and "." not in found.partition("/")[0]):
            # No host, so it may be a short form (`url.<base>.insteadOf`). What names a host goes
            # by that: from which mirror it is fetched is this machine's affair.
            found = normalised(ask("ls-remote", "--get-url", "--", name))
        if found:
            return found
    return ""


def _first_commit(ask: _Git) -> str:
    if ask("rev-parse", "--is-shallow-repository").strip() != "false":
        return ""
    roots = ask("rev-list", "--max-parents=0", "--timestamp", "--all").split("\n")
    found = [root.split(" ") for root in roots if root]
    return min(found, key=lambda root: (int(root[0]), root[1]))[1] if found else ""


class _NoAnswerError(Exception):
    """git isn't there, knows of no repository, refuses this one, or takes too long."""


class _Git:
    """Asks git about a folder, for `LIMIT_S` in all."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._ends = time.monotonic() + LIMIT_S
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("GIT_") or name in _INHERITED
        } | {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}

    def __call__(self, *arguments: str) -> str:
        """Return what git prints; nothing when it says that there is nothing.

        Raises:
            _NoAnswerError: it doesn't answer.
        """
        try:
            asked = subprocess.Popen(  # noqa: S603 - constants, and the name of a remote behind --
                ["git", "--no-pager", "--no-replace-objects", *arguments],  # noqa: S607 - the user's git
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except (OSError, ValueError) as error:
            raise _NoAnswerError from error
        try:
            said, _ = asked.communicate(timeout=max(self._ends - time.monotonic(), 0))
        except subprocess.TimeoutExpired as error:
            asked.kill()
            with suppress(subprocess.TimeoutExpired):  # a file system that hangs: it is left behind
                asked.communicate(timeout=_KILLED_S)
            raise _NoAnswerError from error
        if asked.returncode not in (0, 1):
            raise _NoAnswerError
        return said.decode("utf-8", "surrogateescape")
