"""A hub on loopback that serves one model, well or badly, and writes down what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from agent_journal.models.catalogue import ModelDescription

CHUNK = 16 * 1024


@dataclass
class Hub:
    """What is served, and how.

    Attributes:
        files: contents by path, as in a repository.
        prefix: what stands before a path in an address.
        asked: of each request its path, and its Range header or nothing.
        headers: what came with the last one.
        cuts: after how many bytes each answer in turn breaks off; None is never.
        statuses: with what each request in turn is refused; None is not at all.
        knows_ranges: whether it sends parts of files.
        shift: by how much a part starts elsewhere than it was asked for.
        pause: called before each chunk.
        redirect: where requests for files are sent instead.
    """

    files: dict[str, bytes]
    prefix: str
    asked: list[tuple[str, str]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    cuts: list[int | None] = field(default_factory=list)
    statuses: list[int | None] = field(default_factory=list)
    knows_ranges: bool = True
    shift: int = 0
    has_length: bool = True
    pause: Callable[[], object] = lambda: None
    redirect: str = ""
    address: str = ""

    @property
    def ranges(self) -> list[str]:
        """The parts that were asked for, the empty string being a whole file."""
        return [part for _, part in self.asked]


@contextmanager
def serving(folder: Path, model: ModelDescription) -> Iterator[Hub]:
    """Serve a model's files from a folder on a free port of loopback."""
    files = {file.path: (folder / file.path).read_bytes() for file in model.files}
    hub = Hub(files, f"/{model.repository}/resolve/{model.revision}/")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer(self, hub)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its own name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer(request: BaseHTTPRequestHandler, hub: Hub) -> None:
    """Answer one request as the hub is told to."""
    part = request.headers.get("Range", "")
    path = urlsplit(request.path).path
    hub.asked.append((path, part))
    hub.headers = dict(request.headers)
    status = hub.statuses.pop(0) if hub.statuses else None
    if status is None and hub.redirect:
        request.send_response(302)
        request.send_header("Location", f"{hub.redirect}{path}")
        request.send_header("Content-Length", "0")
        request.end_headers()
        return
    content = hub.files.get(path.removeprefix(hub.prefix))
    start = int(part.removeprefix("bytes=").removesuffix("-")) if part else 0
    if status is None and content is None:
        status = 404
    if status is None and hub.knows_ranges and content is not None and start > len(content):
        status = 416
    if status is not None or content is None:
        request.send_error(status or 404)
        return
    is_part = bool(part) and hub.knows_ranges
    start = start + hub.shift if is_part else 0
    body = content[start:]
    request.send_response(206 if is_part else 200)
    if is_part:
        total = len(content)
        request.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
    if hub.has_length:
        request.send_header("Content-Length", str(len(body)))
    else:
        request.send_header("Connection", "close")
        request.close_connection = True
    request.end_headers()
    cut = hub.cuts.pop(0) if hub.cuts else None
    if cut is not None:
        body = body[:cut]
        request.close_connection = True
    for at in range(0, len(body), CHUNK):
        hub.pause()
        try:
            request.wfile.write(body[at : at + CHUNK])
            request.wfile.flush()
        except OSError:
            request.close_connection = True
            return
