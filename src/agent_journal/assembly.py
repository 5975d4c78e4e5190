"""Puts a journal together from settings; the only place that chooses engines."""

from __future__ import annotations

import hashlib
import logging
import os
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from agent_journal.config import Settings, load_settings
from agent_journal.engines.files import FileStore
from agent_journal.errors import EmbedderUnavailableError, IndexUnavailableError
from agent_journal.journal import Journal
from agent_journal.upkeep import ANALYSIS_VERSION

if TYPE_CHECKING:
    from agent_journal.engines.ledgers import Ledgers
    from agent_journal.models.catalogue import ModelDescription
    from agent_journal.ports import Embedder, EmbedderLoader, Index, Store

_log = logging.getLogger("agent_journal")

INDEX_UNUSED_DAYS = 30
"""Index files that nobody opened for so long are removed; they can be made again."""


def open_journal(where: Settings | Path | str | None = None) -> Journal:
    """Open a journal; nothing is created until something is written.

    Slow parts come later: the index at the first search, numpy and the model at the first one by
    meaning. An index that can't be kept on disk is kept in memory, and every answer says so.

    Args:
        where: the journal folder, or whole settings. None means what the environment and the
            configuration file say, else ``~/.config/opencode/journal``.

    Raises:
        ConfigError: the environment or the configuration file is wrong, and no folder was given.
    """
    notices = []
    if isinstance(where, Settings):
        settings = where
    else:
        folder = None if where is None else os.fspath(where)
        settings = load_settings(os.environ, journal=folder)
        if settings.error and folder is None:
            raise settings.error
        if settings.error:
            notices.append(f"{settings.error}; going on as if there were no configuration file")
    return Journal(
        open_store(settings),
        _index(settings),
        _loader(settings),
        fallback=_memory_index,
        notices=notices,
        secrets=settings.secrets,
        recency=settings.recency,
    )


def open_store(settings: Settings) -> Store:
    """Return a journal's entries by themselves, for work that searches nothing.

    What is written becomes known to the index at the next search. Nothing is created until then.
    """
    memory = settings.state_folder
    if memory is not None:
        memory = memory / "ledgers" / _key(settings)

    def ledgers() -> Ledgers:
        from agent_journal.engines.ledgers import Ledgers  # noqa: PLC0415 - searches need none

        return Ledgers(settings.folder, memory)

    return FileStore(settings.folder, ledgers=ledgers)


def journal_over(store: Store) -> Journal:
    """Return a journal over a store that keeps nothing: an index in memory, and no model."""
    from agent_journal.engines.loading import NoEmbedder  # noqa: PLC0415 - chosen here

    return Journal(store, _memory_index(), NoEmbedder("none is used here"))


def index_path(settings: Settings) -> Path:
    """Return where a journal's index is: named by the journal's real path and what made it.

    Versions of this package that differ in tables or in analysis keep an index each, so that none
    searches or rebuilds another's.
    """
    from agent_journal.engines.sqlite_tables import SCHEMA_VERSION  # noqa: PLC0415 - chosen here

    return settings.index_folder / f"{_key(settings)}-v{SCHEMA_VERSION}.{ANALYSIS_VERSION}.sqlite3"


def _key(settings: Settings) -> str:
    """Return a name for a journal's folder, made of its real path."""
    try:
        folder = os.path.realpath(settings.folder)  # Path.resolve() refuses links in a circle
    except OSError:  # pragma: no cover - a link that can't be read: only /proc has such
        folder = os.fspath(settings.folder)
    return hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]


def count_indexed(settings: Settings, scratch: Path) -> int:
    """Return how many entries a journal's index knows, from a copy, so that it isn't touched.

    Args:
        settings: where the journal and its index are.
        scratch: an empty folder for the copy.
    """
    import shutil  # noqa: PLC0415 - rarely needed

    from agent_journal.engines.sqlite import SqliteIndex  # noqa: PLC0415 - chosen here

    path = index_path(settings)
    try:
        for each in path.parent.glob(f"{path.name}*"):
            shutil.copyfile(each, scratch / each.name)
        index = SqliteIndex(scratch / path.name)
        with closing(index):
            return index.count()
    except (OSError, IndexUnavailableError):
        return 0  # there is none that could be asked


def _index(settings: Settings) -> Index:
    from agent_journal.engines.sqlite import (  # noqa: PLC0415 - chosen here
        SqliteIndex,
        remove_unused,
    )

    path = index_path(settings)
    with suppress(OSError):  # a place that can't be read; the first search says so
        remove_unused(path.parent, older_than_days=INDEX_UNUSED_DAYS, keep=path)
    return SqliteIndex(path)


def _memory_index() -> Index:
    from agent_journal.engines.memory_index import MemoryIndex  # noqa: PLC0415 - rarely needed

    return MemoryIndex()


def _loader(settings: Settings) -> EmbedderLoader:
    from agent_journal.engines.loading import (  # noqa: PLC0415 - chosen here
        BackgroundLoader,
        NoEmbedder,
    )

    if settings.model == "none":
        return NoEmbedder("only words are compared, as asked")

    return BackgroundLoader(lambda: load_embedder(settings))


def load_embedder(settings: Settings) -> Embedder:
    """Load the embedder that is configured, which takes a second or two, and return it.

    Raises:
        EmbedderUnavailableError: it can't be used here.
    """
    from agent_journal.engines.use import load_use  # noqa: PLC0415 - chosen here
    from agent_journal.models.catalogue import SEED  # noqa: PLC0415 - as above

    if settings.model == "auto" and is_ready(SEED, settings):
        try:
            return _load_onnx(settings, SEED.key)
        except EmbedderUnavailableError as error:
            _log.warning("%s; the bundled model stands in", error)
    if settings.model not in {"auto", "bundled"}:
        return _load_onnx(settings)
    places = settings.model_places
    return load_use(places.prepared if places else None)


def is_ready(model: ModelDescription, settings: Settings) -> bool:
    """Tell whether a model's files seem to be there, and what runs it; neither is opened."""
    from agent_journal.models.places import found  # noqa: PLC0415 - with what hashing brings

    if settings.model_places is None or missing_packages():
        return False
    there = found(model, settings.model_places, model.loaded, verify=False)
    return len(there.paths) == len(model.loaded)


def missing_packages() -> list[str]:
    """Return the packages that installed models need, and that aren't installed; none is loaded."""
    return [name for name in ("onnxruntime", "sentencepiece") if not find_spec(name)]


def _load_onnx(settings: Settings, name: str = "") -> Embedder:
    from agent_journal.engines.onnx import load_onnx  # noqa: PLC0415 - slow: it brings numpy
    from agent_journal.models.catalogue import described  # noqa: PLC0415 - for such a model only
    from agent_journal.models.sources import (  # noqa: PLC0415 - for such a model only
        folder_source,
        installed_source,
    )

    places = settings.model_places
    model = described(name or settings.model)
    if model is None:
        source = folder_source(Path(settings.model))
    elif places is None:
        raise EmbedderUnavailableError(
            f"the model {model.key} can't be looked for: no home directory is known; set HOME"
        )
    else:
        source = installed_source(model, places)
    return load_onnx(source, places.prepared if places else None)
