"""One file over HTTP, taken up where it was left off; the one module that opens a connection.

The standard library does it all: proxies from the environment, certificates from the system,
redirects with the range kept. What it lacks, going on after a cut, is below.
"""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import FileIO
from typing import Protocol
from urllib.parse import quote, urlsplit

from agent_journal.errors import ModelUnavailableError
from agent_journal.models.catalogue import ModelDescription, ModelFile

HUB = "https://huggingface.co"
"""Where models come from unless ``HF_ENDPOINT`` names a mirror."""

TIMEOUT_S = 20.0
"""The longest wait for a connection, and then for the next bytes."""

_CHUNK = 256 * 1024
_IDLE_ATTEMPTS = 3
_BUSY = frozenset({408, 429, 500, 502, 503, 504})
_PARTIAL, _BEYOND = 206, 416
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class _Response(Protocol):
    status: int
    headers: http.client.HTTPMessage

    def read1(self, n: int = ...) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Source:
    """Where files are fetched from.

    Attributes:
        endpoint: a hub's address, without a slash at its end.
        timeout_s: the longest wait for a connection, and for the next bytes.
        pause_s: how long to wait before trying once more; each time twice as long.
    """

    endpoint: str
    timeout_s: float = TIMEOUT_S
    pause_s: float = 1.0

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Source:
        """Return the source that the environment names.

        Raises:
            ModelUnavailableError: it is no address of a web server.
        """
        endpoint = environ.get("HF_ENDPOINT", "").strip() or HUB
        try:
            parts = urlsplit(endpoint)
            is_address = parts.scheme in {"http", "https"} and bool(parts.hostname)
        except ValueError:
            is_address = False
        if not is_address:
            reason = f"HF_ENDPOINT is {endpoint[:80]!r}, which is no http or https address"
            raise ModelUnavailableError("", reason)
        return cls(endpoint.rstrip("/"))

    def url(self, model: ModelDescription, file: ModelFile) -> str:
        """Return where a file is."""
        path = quote(f"{model.repository}/resolve/{model.revision}/{file.path}")
        return f"{self.endpoint}/{path}"


def fetch(
    source: Source,
    model: ModelDescription,
    file: ModelFile,
    into: FileIO,
    progress: Callable[[int], None],
) -> None:
    """Fill a file up to its size; what it holds already is kept, and gone on from.

    The content isn't checked, only its length.

    Args:
        source: where it is fetched from.
        model: whose file it is.
        file: which one.
        into: open for reading and writing, unbuffered.
        progress: told how many bytes there are.

    Raises:
        ModelUnavailableError: it can't be had; what has come stays, to be gone on from.
        OSError: it can't be written.
    """
    have = into.seek(0, 2)
    if have > file.size_bytes:
        into.truncate(0)
        have = 0
    idle = 0
    while have < file.size_bytes:
        progress(have)
        before = have
        reason = _attempt(source, model, file, into, progress)
        have = into.seek(0, 2)
        idle = 0 if have > before else idle + 1
        if have < file.size_bytes and idle >= _IDLE_ATTEMPTS:
            raise ModelUnavailableError(
                model.key,
                f"{file.path} could not be fetched whole: {reason}; "
                "what has come is kept: install it again to go on",
            )
        if idle:
            time.sleep(source.pause_s * 2 ** (idle - 1))
    progress(have)


def _attempt(
    source: Source,
    model: ModelDescription,
    file: ModelFile,
    into: FileIO,
    progress: Callable[[int], None],
) -> str:
    """Fetch as much as comes; return why it ended before the end.

    Raises:
        ModelUnavailableError: it is no use to try again.
        OSError: it can't be written.
    """
    have = into.seek(0, 2)
    request = urllib.request.Request(  # noqa: S310 - `Source.of` lets only http and https through
        source.url(model, file), headers={"Accept-Encoding": "identity"}
    )
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        with _opener().open(request, timeout=source.timeout_s) as response:
            start = _start(response, have, model, file)
            if start < have:
                into.seek(0)
                into.truncate()
            return _copy(response, into, file.size_bytes, progress)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == _BEYOND:  # of what was kept, which therefore is another file's
                into.seek(0)
                into.truncate()
                return "the server has less than was kept"
            if error.code in _BUSY:
                return f"the server answers {error.code}"
            reason = f"{source.url(model, file)} answers {error.code} {error.reason}"
            raise ModelUnavailableError(model.key, reason) from None
    except urllib.error.URLError as error:
        host = urlsplit(source.endpoint).netloc
        reason = f"{host} can't be reached: {_said(error.reason)}"
        raise ModelUnavailableError(
            model.key, f"{reason}; on a machine without a network use --from FOLDER"
        ) from None
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        return _said(error)


def _start(response: _Response, have: int, model: ModelDescription, file: ModelFile) -> int:
    """Return where in the file the answer starts.

    Raises:
        ModelUnavailableError: it is another file's, by its length.
    """
    length = response.headers.get("Content-Length", "")
    total = int(length) if length.isdecimal() else None
    start = 0
    if response.status == _PARTIAL:
        found = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if not found or int(found[1]) != have:
            reason = f"the server sends another part of {file.path} than was asked for"
            raise ModelUnavailableError(model.key, reason)
        start = have
        total = int(found[2]) if found[2].isdecimal() else None
    if total not in (None, file.size_bytes):
        reason = f"{file.path} has {total:,} bytes there, not {file.size_bytes:,}"
        raise ModelUnavailableError(model.key, f"{reason}; it is not the file that is meant")
    return start


def _copy(
    response: _Response, into: FileIO, size_bytes: int, progress: Callable[[int], None]
) -> str:
    have = into.seek(0, 2)
    try:
        while have < size_bytes and (chunk := response.read1(_CHUNK)):
            left = memoryview(chunk)[: size_bytes - have]
            while left:
                left = left[into.write(left) :]
            have = into.tell()
            progress(have)
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        return _said(error)
    return "the connection was closed early"


class _NoDowngrade(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but not from https to http."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: object,
        code: int,
        msg: str,
        headers: object,
        newurl: str,
    ) -> urllib.request.Request | None:
        if urlsplit(req.full_url).scheme == "https" and urlsplit(newurl).scheme != "https":
            raise urllib.error.URLError("it redirects from https to something else")
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]  # typeshed's names of these are private


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_NoDowngrade)


def _said(error: object) -> str:
    """Return what an error says, in lower case at its start."""
    if isinstance(error, TimeoutError):
        return "nothing came for too long"
    text = str(getattr(error, "strerror", None) or error) or type(error).__name__
    return f"{text[:1].lower()}{text[1:]}"
