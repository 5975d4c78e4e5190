"""Where a model's files may lie, in the layouts of the tools that put them there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agent_journal.models.catalogue import ModelDescription, ModelFile


class Places(NamedTuple):
    """The folders in which models may be.

    Attributes:
        home: where models are installed: files lie in it as ``repository/path``, as transformers.js
            keeps them.
        others: more such folders.
        hubs: folders in the hub's layout, ``models--owner--name/snapshots/revision/path``.
        prepared: where we keep what was made of a model's files so that it loads sooner.
    """

    home: Path
    others: tuple[Path, ...] = ()
    hubs: tuple[Path, ...] = ()
    prepared: Path | None = None

    def target(self, model: ModelDescription, file: ModelFile) -> Path:
        """Return where a file is installed."""
        return self.home / model.repository / file.path

    def candidates(self, model: ModelDescription, file: ModelFile) -> Iterator[Path]:
        """Yield where a file may be, the best place first."""
        for folder in (self.home, *self.others):
            yield folder / model.repository / file.path
            yield folder / model.repository / model.revision / file.path
        for hub in self.hubs:
            snapshots = hub / f"models--{model.repository.replace('/', '--')}" / "snapshots"
            yield snapshots / model.revision / file.path
            try:
                names = sorted(os.listdir(snapshots))  # noqa: PTH208 - names are all that is needed
            except OSError:
                continue
            for name in names:
                yield snapshots / name / file.path


def places(environ: Mapping[str, str], *, own: Path, cache_dir: Path | None, home: Path) -> Places:
    """Return where models may be on this machine.

    Args:
        environ: ``HF_HOME`` and ``HF_HUB_CACHE`` move the hub's cache, as for its own tools.
        own: our folder in the user's cache.
        cache_dir: what the configuration says, if anything.
        home: the user's home directory.
    """
    cache = Path(environ.get("HF_HOME") or home / ".cache" / "huggingface")
    others = [own, cache] if cache_dir else [cache]
    moved = environ.get("HF_HUB_CACHE")
    hubs = [Path(moved), cache / "hub"] if moved else [cache / "hub"]
    return Places(cache_dir or own, tuple(others), tuple(hubs), own / "prepared")


class Found(NamedTuple):
    """What was found of a model.

    Attributes:
        paths: the files that are there, by their path in the repository.
        doubtful: files that have the right name but are not the right ones.
    """

    paths: Mapping[str, Path]
    doubtful: tuple[Path, ...] = ()


def found(
    model: ModelDescription, places: Places, files: tuple[ModelFile, ...], *, verify: bool
) -> Found:
    """Look for some files of a model.

    Args:
        model: whose files they are.
        places: where to look.
        files: those that are wanted.
        verify: read each to the end and trust its hash; otherwise its size is enough.
    """
    paths: dict[str, Path] = {}
    doubtful: dict[Path, None] = {}
    for file in files:
        for path in places.candidates(model, file):
            if is_right(path, file, verify=verify):
                paths[file.path] = path
                break
            if os.path.isfile(path):  # noqa: PTH113 - Path.is_file() fails on odd names
                doubtful[path] = None
    return Found(paths, tuple(doubtful))


def is_right(path: Path, file: ModelFile, *, verify: bool) -> bool:
    """Tell whether a file on the disk is the one described: by its size, or by its hash, too."""
    try:
        return path.stat().st_size == file.size_bytes and (
            not verify or sha256_of(path) == file.sha256
        )
    except OSError:
        return False


def sha256_of(path: Path) -> str:
    """Return a file's SHA-256, in hexadecimal digits.

    Raises:
        OSError: it can't be read.
    """
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
