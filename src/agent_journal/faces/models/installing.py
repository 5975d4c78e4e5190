"""A model's files get into their place, checked; and out of it again.

What was installed here is noted beside it, so that removing a model leaves alone what other tools
have fetched into the same folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from agent_journal.engines import placing
from agent_journal.errors import ModelUnavailableError
from agent_journal.faces.models.fetching import Source, fetch
from agent_journal.models.catalogue import ModelDescription, ModelFile
from agent_journal.models.places import Places, found, is_right
from agent_journal.ports import Progress

NOTE = ".agent-journal.json"
"""Names the files that were installed here, beside them."""

_CHUNK = 1024 * 1024
_SPARE_BYTES = 16 * 1024 * 1024
_MODE = 0o644


@dataclass(frozen=True, slots=True)
class Installed:
    """What an installation did.

    Attributes:
        paths: where each file is now, by its path in the repository.
        fetched: which of them came now.
    """

    model: ModelDescription
    paths: Mapping[str, Path]
    fetched: tuple[str, ...]


def install(
    model: ModelDescription,
    places: Places,
    source: Source | Path,
    progress: Progress | None = None,
) -> Installed:
    """Bring a model's files into their place; those that are somewhere already stay where they are.

    Each is checked against its hash before it appears, all at once, under its name. What has come
    of one is kept when it can't be had whole, and gone on from the next time.

    Args:
        model: which one.
        places: where they may be, and where they go.
        source: where they are fetched from, or a folder that holds them.
        progress: told of (done, total) bytes.

    Raises:
        ModelUnavailableError: they can't be had, or not the right ones; what is there stays.
    """
    there = dict(found(model, places, model.files, verify=True).paths)
    wanted = [file for file in model.files if file.path not in there]
    total = sum(file.size_bytes for file in wanted)
    try:
        given = _in_folder(model, wanted, source) if isinstance(source, Path) else {}
        _require_room(model, places, wanted)
        done = 0
        for file in wanted:
            come = _counting(progress, done, total)
            if isinstance(source, Path):
                _take(model, file, places.target(model, file), given[file.path], come)
            else:
                _download(model, file, places.target(model, file), source, come)
            _note(places, model, file.path)
            there[file.path] = places.target(model, file)
            done += file.size_bytes
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        reason = f"its files can't be kept in {places.home}: {where}{placing.reason_of(error)}"
        raise ModelUnavailableError(model.key, reason) from error
    return Installed(model, there, tuple(file.path for file in wanted))


def remove(model: ModelDescription, places: Places) -> tuple[list[Path], list[Path]]:
    """Remove what was installed of a model.

    Returns:
        The files that are gone now, and those that are there still since others put them there.

    Raises:
        ModelUnavailableError: one of them can't be removed.
    """
    folder = places.home / model.repository
    gone: list[Path] = []
    try:
        for path in _noted(folder, model):
            with suppress(FileNotFoundError):
                (folder / path).unlink()
                gone.append(folder / path)
        for part in folder.rglob(f"{placing.TEMPORARY_PREFIX}*.part"):
            part.unlink()
        with suppress(FileNotFoundError):
            (folder / NOTE).unlink()
        if places.prepared:
            for each in model.files:
                with suppress(FileNotFoundError):
                    (places.prepared / f"{each.sha256}.sentencepiece").unlink()
    except OSError as error:
        reason = f"{error.filename} can't be removed: {placing.reason_of(error)}"
        raise ModelUnavailableError(model.key, reason) from error
    for empty in (folder / "onnx", folder, folder.parent):
        with suppress(OSError):
            empty.rmdir()
    left = found(model, places, model.files, verify=False).paths
    return gone, list(left.values())


def _counting(progress: Progress | None, before: int, total: int) -> Callable[[int], None]:
    def count(done: int) -> None:
        if progress:
            progress(before + done, total)

    return count


def _require_room(model: ModelDescription, places: Places, wanted: list[ModelFile]) -> None:
    needed = sum(file.size_bytes for file in wanted) + _SPARE_BYTES
    folder = places.home
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if wanted and free < needed:
        raise ModelUnavailableError(
            model.key,
            f"{places.home} has {free // 1_000_000:,} MB free, and {needed // 1_000_000:,} MB are "
            "needed",
        )


def _in_folder(model: ModelDescription, wanted: list[ModelFile], folder: Path) -> dict[str, Path]:
    """Return where in a folder the wanted files are.

    Raises:
        ModelUnavailableError: some are not there, or not the right ones.
    """
    given: dict[str, Path] = {}
    wrong: list[str] = []
    missing: list[str] = []
    for file in wanted:
        name = file.path.rpartition("/")[2]
        tried = [folder / model.repository / file.path, folder / file.path, folder / name]
        there = [path for path in tried if path.is_file()]
        right = next((path for path in there if is_right(path, file, verify=True)), None)
        if right is not None:
            given[file.path] = right
        elif there:
            wrong.append(str(there[0]))
        else:
            missing.append(file.path)
    if wrong:
        reason = f"{wrong[0]} is not the file that is meant: its hash is another"
        raise ModelUnavailableError(model.key, reason)
    if missing:
        reason = f"{folder} lacks {', '.join(missing)} of {model.repository}"
        raise ModelUnavailableError(model.key, f"{reason} at revision {model.revision}")
    return given


def _take(
    model: ModelDescription,
    file: ModelFile,
    target: Path,
    given: Path,
    come: Callable[[int], None],
) -> None:
    """Copy a file from a folder."""
    placing.create_folder(target.parent)
    digest = hashlib.sha256()
    with given.open("rb") as stream, placing.opened(target.parent) as folder:
        with placing.Staging(folder, _MODE) as staging:
            done = 0
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
                staging.fill(chunk, durable=False)
                done += len(chunk)
                come(done)
            staging.fill(b"", durable=True)
            if digest.hexdigest() != file.sha256:
                raise ModelUnavailableError(model.key, f"{given} changed while it was copied")
            staging.replace(target.name)
        placing.flush_folder(folder)


def _download(
    model: ModelDescription,
    file: ModelFile,
    target: Path,
    source: Source,
    come: Callable[[int], None],
) -> None:
    """Fetch a file into its place, going on from what an earlier call has left of it."""
    placing.create_folder(target.parent)
    part = target.with_name(f"{placing.TEMPORARY_PREFIX}{file.sha256[:16]}.part")
    with part.open("a+b", buffering=0) as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reason = f"another process is fetching {file.path} now"
            raise ModelUnavailableError(model.key, reason) from None
        if not part.exists():
            return  # another process has just put it into its place
        try:
            _fill(model, file, source, stream, come)
            placing.flush(stream.fileno())
            part.chmod(_MODE)
            part.replace(target)
        finally:
            if stream.seek(0, 2) == 0:  # there is nothing to go on from
                part.unlink()
    with placing.opened(target.parent) as folder:
        placing.flush_folder(folder)


def _fill(
    model: ModelDescription,
    file: ModelFile,
    source: Source,
    stream: FileIO,
    come: Callable[[int], None],
) -> None:
    """Fetch what is missing of a file, and check all of it.

    Raises:
        ModelUnavailableError: it can't be had, or isn't the right one; of that nothing is kept.
        OSError: it can't be written.
    """
    had = stream.seek(0, 2)
    fetch(source, model, file, stream, come)
    if had and not _is_right(stream, file):  # what was kept is no beginning of it
        stream.truncate(0)
        fetch(source, model, file, stream, come)
    if not _is_right(stream, file):
        stream.truncate(0)
        reason = f"{source.url(model, file)} is not the file that is meant"
        raise ModelUnavailableError(model.key, f"{reason}: its hash is another")


def _is_right(stream: FileIO, file: ModelFile) -> bool:
    stream.seek(0)
    return hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256


def _noted(folder: Path, model: ModelDescription) -> list[str]:
    """Return the paths of the model's files that were installed here."""
    try:
        said = json.loads((folder / NOTE).read_bytes())
    except (OSError, ValueError):
        return []
    paths = said.get("installed") if isinstance(said, dict) else None
    noted = paths if isinstance(paths, list) else []
    return [file.path for file in model.files if file.path in noted]


def _note(places: Places, model: ModelDescription, path: str) -> None:
    """Note that a file was installed."""
    folder = places.home / model.repository
    paths = sorted({*_noted(folder, model), path})
    with placing.opened(folder) as descriptor, placing.Staging(descriptor, _MODE) as staging:
        staging.fill(json.dumps({"installed": paths}).encode(), durable=True)
        staging.replace(NOTE)
