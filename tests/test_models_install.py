"""Installing models: whole or not at all, however badly they come, and from where one says."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.drop import run_as_nobody
from tests.folders import open_folder
from tests.hub import CHUNK, Hub, serving
from tests.tiny_models import describe, make_model

from agent_journal.engines.onnx import load_onnx
from agent_journal.errors import EmbedderUnavailableError, ModelUnavailableError
from agent_journal.faces.models.fetching import HUB, Source
from agent_journal.faces.models.installing import NOTE, install, remove
from agent_journal.models.catalogue import ModelDescription
from agent_journal.models.places import Places, found
from agent_journal.models.sources import installed_source

WEIGHTS = "onnx/model_quantized.onnx"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model, as its repository has it."""
    return make_model(tmp_path_factory.mktemp("repository"))


@pytest.fixture(scope="session")
def model(folder: Path) -> ModelDescription:
    """What is known of it."""
    return describe(folder)


@pytest.fixture
def hub(folder: Path, model: ModelDescription) -> Iterator[Hub]:
    """A server that has it."""
    with serving(folder, model) as hub:
        yield hub


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Where models may be: two folders of our kind and a hub's cache, all missing yet."""
    return Places(
        tmp_path / "home", (tmp_path / "other",), (tmp_path / "hub",), tmp_path / "prepared"
    )


@pytest.fixture
def source(hub: Hub) -> Source:
    """The server, asked by somebody in a hurry."""
    return Source(hub.address, timeout_s=5.0, pause_s=0.0)


def refused(work: Callable[[], object]) -> str:
    """Return why something about a model could not be done."""
    with pytest.raises(ModelUnavailableError) as caught:
        work()
    assert caught.value.model in {"tiny", ""}
    return caught.value.reason


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files in a folder, hidden ones too."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def assert_whole(places: Places, model: ModelDescription) -> None:
    """Check that all of a model is there and right, and nothing beside it."""
    there = contents(places.home / model.repository)
    note = json.loads(there.pop(NOTE))
    assert note == {"installed": sorted(file.path for file in model.files)}
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in there.items()}
    assert sums == {file.path: file.sha256 for file in model.files}


# from the network


def test_a_model_is_fetched_into_its_place(
    hub: Hub, source: Source, places: Places, model: ModelDescription
) -> None:
    """In transformers.js's layout, readable by other tools, each byte counted; then it loads."""
    counted: list[tuple[int, int]] = []
    done = install(model, places, source, lambda *count: counted.append(count))
    assert set(done.fetched) == set(done.paths) == {file.path for file in model.files}
    assert_whole(places, model)
    weights = places.home / model.repository / WEIGHTS
    assert done.paths[WEIGHTS] == weights
    assert stat.S_IMODE(weights.stat().st_mode) == 0o644
    assert counted[-1] == (model.size_bytes, model.size_bytes)
    assert counted == sorted(counted)
    assert [path for path, _ in hub.asked] == [hub.prefix + file.path for file in model.files]
    assert hub.headers["Accept-Encoding"] == "identity"
    assert "Authorization" not in hub.headers
    embedder = load_onnx(installed_source(model, places), places.prepared)
    assert (embedder.name, embedder.dimension) == (model.repository, model.dimension)


def test_what_is_there_is_not_fetched_again(
    hub: Hub, source: Source, places: Places, model: ModelDescription
) -> None:
    """A second installation asks for nothing; one file lost is fetched alone."""
    install(model, places, source)
    (places.home / model.repository / "config.json").unlink()
    hub.asked.clear()
    assert install(model, places, source).fetched == ("config.json",)
    assert install(model, places, source).fetched == ()
    assert [path for path, _ in hub.asked] == [f"{hub.prefix}config.json"]


def test_cuts_are_gone_on_from(
    hub: Hub, source: Source, places: Places, model: ModelDescription
) -> None:
    """A connection that breaks off is taken up where it ended, as long as it brings anything."""
    hub.cuts = [100_000, 1, 200_000]
    install(model, places, source)
    assert_whole(places, model)
    assert hub.ranges[:4] == ["", "bytes=100000-", "bytes=100001-", "bytes=300001-"]


def test_what_has_come_is_kept_for_the_next_time(
    hub: Hub, source: Source, places: Places, model: ModelDescription
) -> None:
    """An installation that failed half-way goes on; until then nothing has the file's name."""
    hub.cuts = [100_000, 0, 0, 0]
    reason = refused(lambda: install(model, places, source))
    assert "the connection was closed early" in reason
    assert "install it again to go on" in reason
    (part,) = contents(places.home)
    assert part.endswith(".part")
    hub.asked.clear()
    install(model, places, source)
    assert hub.ranges[0] == "bytes=100000-"
    assert_whole(places, model)


def test_a_server_without_ranges_starts_anew(
    hub: Hub, source: Source, places: Places, model: ModelDescription
) -> None:
    """Whoever ignores the range sends it all again, and no byte is taken twice."""
    hub.cuts = [100_000]
    hub.knows_ranges = False
    install(model, places, source)
    assert hub.ranges[:2] == ["", "bytes=100000-"]
    assert_whole(places, model)


def test_a_server_that_does_not_say_how_much_it_sends(
    hub: Hub, source: Source, places: Places, model: ModelDescription
) -> None:
    """The described size is what counts."""
    hub.has_length = False
    hub.cuts = [5_000]
    install(model, places, source)
    assert_whole(places, model)


def test_another_file_is_never_taken(
    hub: Hub, source: Source, places: Places, model: ModelDescription
) -> None:
    """Neither one of another length nor one of the same; nothing of it is kept."""
    right = hub.files[WEIGHTS]
    hub.files[WEIGHTS] = right[:-1]
    assert "it is not the file that is meant" in refused(lambda: install(model, places, source))
    assert "bytes there, not" in refused(lambda: install(model, places, source))
    hub.files[WEIGHTS] = right[:-1] + bytes([right[-1] ^ 1])
    assert "its hash is another" in refused(lambda: install(model, places, source))
    assert contents(places.home) == {}
    hub.files[WEIGHTS] = right + b"more"
    hub.has_length = False
    install(model, places, source)
    assert_whole(places, model)


@pytest.mark.parametrize("kept", [b"x" * 100_000, b"x" * 5_000_000])
def test_a_kept_part_that_is_no_beginning_is_fetched_anew(
    hub: Hub, source: Source, places: Places, model: ModelDescription, kept: bytes
) -> None:
    """Whatever damaged what was kept, the file is right in the end."""
    hub.cuts = [10, 0, 0, 0]
    refused(lambda: install(model, places, source))
    (part,) = places.home.rglob("*.part")
    part.write_bytes(kept)
    hub.asked.clear()
    install(model, places, source)
    assert_whole(places, model)
    assert hub.ranges[0] == ("bytes=100000-" if len(kept) == 100_000 else "")


def test_a_part_from_elsewhere_is_refused(
    hub: Hub, source: Source, places: Places, model: ModelDescription
) -> None:
    """A server that sends another part than was asked for is not believed."""
    hub.cuts = [100_000]
    hub.shift = 7
    reason = refused(lambda: install(model, places, source))
    assert "sends another part of onnx/model_quantized.onnx" in reason


@pytest.mark.parametrize("status", [416, 429, 500, 503])
def test_a_busy_server_is_asked_again(
    hub: Hub, source: Source, places: Places, model: ModelDescription, status: int
) -> None:
    """One that is overloaded, or has forgotten what it had, gets another chance."""
    hub.cuts = [100_000]
    hub.statuses = [None, status]
    install(model, places, source)
    assert_whole(places, model)


def test_a_server_that_stays_busy_is_given_up(
    hub: Hub, source: Source, places: Places, model: ModelDescription
) -> None:
    """After three answers that brought nothing."""
    hub.statuses = [503] * 10
    assert "the server answers 503" in refused(lambda: install(model, places, source))
    assert len(hub.asked) == 3
    assert contents(places.home) == {}


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_is_told_at_once(
    hub: Hub, source: Source, places: Places, model: ModelDescription, status: int
) -> None:
    """With the address and the answer, and without asking again."""
    hub.statuses = [status]
    reason = refused(lambda: install(model, places, source))
    assert f"{hub.address}{hub.prefix}{WEIGHTS} answers {status}" in reason
    assert len(hub.asked) == 1


def test_slow_bytes_are_waited_for_and_silence_is_not(
    hub: Hub, places: Places, model: ModelDescription
) -> None:
    """As long as anything comes it goes on; when nothing comes for too long, what came is kept."""
    source = Source(hub.address, timeout_s=0.5, pause_s=0.0)
    slow = threading.Event()
    hub.pause = lambda: slow.wait(0.02)
    install(model, places, source)
    assert_whole(places, model)
    remove(model, places)
    chunks = iter(range(4))
    hub.pause = lambda: None if next(chunks, None) is not None else slow.wait(30)
    reason = refused(lambda: install(model, places, source))
    slow.set()
    assert "nothing came for too long" in reason
    (part,) = contents(places.home).values()
    assert len(part) == 4 * CHUNK


def test_a_server_that_cannot_be_reached_is_told(places: Places, model: ModelDescription) -> None:
    """Refused, unknown or silent: at once or after the timeout, with the way out."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        reason = refused(lambda: install(model, places, Source(f"http://127.0.0.1:{port}")))
        assert f"127.0.0.1:{port} can't be reached: connection refused" in reason
        assert "--from FOLDER" in reason
        closed.listen(1)
        silent = Source(f"http://127.0.0.1:{port}", timeout_s=0.2, pause_s=0.0)
        assert "nothing came for too long" in refused(lambda: install(model, places, silent))
    assert contents(places.home) == {}


def test_redirects_are_followed_with_the_range(
    hub: Hub, source: Source, folder: Path, places: Places, model: ModelDescription
) -> None:
    """As to the server that has the hub's large files."""
    with serving(folder, model) as other:
        hub.redirect = other.address
        other.cuts = [100_000]
        install(model, places, source)
        assert other.ranges[:2] == ["", "bytes=100000-"]
    assert_whole(places, model)


def test_a_redirect_from_https_to_http_is_not_followed() -> None:
    """Nobody on the way may turn a private connection into an open one."""
    import urllib.error  # noqa: PLC0415 - only here
    import urllib.request  # noqa: PLC0415 - as above

    from agent_journal.faces.models.fetching import _NoDowngrade  # noqa: PLC0415 - as above

    handler = _NoDowngrade()
    request = urllib.request.Request("https://a/x")
    followed = handler.redirect_request(request, None, 302, "", {}, "https://b/x")
    assert followed is not None
    with pytest.raises(urllib.error.URLError, match="from https"):
        handler.redirect_request(request, None, 302, "", {}, "http://b/x")


def test_the_environment_names_the_server_and_proxies(
    hub: Hub, places: Places, model: ModelDescription, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HF_ENDPOINT moves it; http_proxy is asked in its place, but not for what no_proxy says."""
    assert Source.of({}).endpoint == Source.of({"HF_ENDPOINT": " "}).endpoint == HUB
    assert Source.of({"HF_ENDPOINT": f"{hub.address}/"}).endpoint == hub.address
    for bad in ("ftp://x", "x", "http://", "http://[", "file:///etc"):
        reason = refused(partial(Source.of, {"HF_ENDPOINT": bad}))
        assert "no http or https address" in reason
    monkeypatch.setenv("http_proxy", hub.address)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    install(model, places, Source("http://models.invalid", pause_s=0.0))
    assert_whole(places, model)
    assert hub.headers["Host"] == "models.invalid"
    remove(model, places)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    install(model, places, Source(hub.address, pause_s=0.0))
    assert_whole(places, model)


def test_two_at_once_do_not_mix(
    hub: Hub, source: Source, places: Places, model: ModelDescription
) -> None:
    """While one process fetches a file, another is told so; what the first has fetched is whole."""
    begun, go = threading.Event(), threading.Event()

    def pause() -> None:
        begun.set()
        go.wait(30)

    hub.pause = pause
    first = threading.Thread(target=install, args=(model, places, source))
    first.start()
    assert begun.wait(30)
    reason = refused(lambda: install(model, places, source))
    go.set()
    first.join(60)
    assert "another process is fetching onnx/model_quantized.onnx now" in reason
    assert_whole(places, model)


def test_what_another_process_has_just_finished_is_left_alone(
    source: Source, places: Places, model: ModelDescription, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waited for the lock finds the part gone, and the file there."""
    install(model, places, source)
    target = places.home / model.repository / "config.json"
    held = target.read_bytes()
    target.unlink()
    lock = fcntl.flock

    def finish(stream: object, how: int) -> None:
        for part in target.parent.glob("*.part"):
            part.replace(target)
            target.write_bytes(held)
        lock(stream, how)  # type: ignore[arg-type]  # whatever is locked

    monkeypatch.setattr(fcntl, "flock", finish)
    install(model, places, source)
    assert_whole(places, model)


def test_a_full_or_closed_disk_is_told(
    source: Source, places: Places, model: ModelDescription, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is fetched when there is too little room; else with the reason."""
    usage = shutil.disk_usage(places.home.parent)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1_000_000))
        reason = refused(lambda: install(model, places, source))
    assert "1 MB free, and 18 MB are needed" in reason
    assert contents(places.home.parent) == {}
    places.home.write_text("a file", encoding="utf-8")
    reason = refused(lambda: install(model, places, source))
    assert f"its files can't be kept in {places.home}" in reason


def test_a_folder_that_may_not_be_written_is_told() -> None:
    """With its name, as whoever has no right to it."""
    script = """
from pathlib import Path
from agent_journal.errors import ModelUnavailableError
from agent_journal.faces.models.fetching import Source
from agent_journal.faces.models.installing import install
from agent_journal.models.catalogue import SEED
from agent_journal.models.places import Places

top = Path(sys.argv[1])
with dropped():
    (top / "closed").mkdir(mode=0o500)
    try:
        install(SEED, Places(top / "closed" / "models"), Source("http://127.0.0.1:9"))
    except ModelUnavailableError as error:
        print(error.reason)
"""
    with open_folder() as folder:
        assert "permission denied" in run_as_nobody(script, folder)


# what is on this machine already


def test_files_of_other_tools_are_used_where_they_lie(
    hub: Hub, source: Source, folder: Path, places: Places, model: ModelDescription
) -> None:
    """transformers.js's folders and the hub's snapshots count once their hash is right."""
    revision = model.revision
    layouts = (
        places.others[0] / model.repository,
        places.others[0] / model.repository / revision,
        places.hubs[0] / "models--Tests--tiny" / "snapshots" / revision,
        places.hubs[0] / "models--Tests--tiny" / "snapshots" / "another",
    )
    for layout in layouts:
        shutil.copytree(folder, layout)
        done = install(model, places, source)
        assert done.fetched == ()
        assert {path.parent for path in done.paths.values()} == {layout, layout / "onnx"}
        assert installed_source(model, places).weights == layout / WEIGHTS
        shutil.rmtree(layout)
    assert hub.asked == []
    assert not places.home.exists()


def test_files_with_the_right_name_alone_are_not_used(
    hub: Hub, source: Source, folder: Path, places: Places, model: ModelDescription
) -> None:
    """Of another size or another content: they stay, and the right ones are fetched."""
    other = places.others[0] / model.repository
    shutil.copytree(folder, other)
    weights = bytearray((folder / WEIGHTS).read_bytes())
    weights[-1] ^= 1
    (other / WEIGHTS).write_bytes(weights)
    (other / "tokenizer.json").write_text("{}", encoding="utf-8")
    assert set(found(model, places, model.files, verify=False).paths) == {WEIGHTS, "config.json"}
    with pytest.raises(EmbedderUnavailableError, match="can't be trusted"):
        installed_source(model, places)
    assert set(install(model, places, source).fetched) == {WEIGHTS, "tokenizer.json"}
    assert (other / WEIGHTS).read_bytes() == weights
    assert installed_source(model, places).weights == places.home / model.repository / WEIGHTS
    assert len(hub.asked) == 2


def test_a_model_that_is_not_there_is_told(places: Places, model: ModelDescription) -> None:
    """With the command that brings it."""
    with pytest.raises(EmbedderUnavailableError, match="run: agent-journal model install tiny"):
        installed_source(model, places)


# from a folder


@pytest.mark.parametrize("layout", ["", "Tests/tiny", "flat"])
def test_a_model_comes_from_a_folder(
    folder: Path, places: Places, model: ModelDescription, tmp_path: Path, layout: str
) -> None:
    """As a repository, below its name, or with all files side by side; no server is asked."""
    stick = tmp_path / "stick"
    if layout == "flat":
        stick.mkdir()
        for file in model.files:
            shutil.copy(folder / file.path, stick)
    else:
        shutil.copytree(folder, stick / layout)
    counted: list[tuple[int, int]] = []
    install(model, places, stick, lambda *count: counted.append(count))
    assert_whole(places, model)
    assert counted[-1] == (model.size_bytes, model.size_bytes)


def test_a_folder_that_lacks_something_is_told(
    folder: Path, places: Places, model: ModelDescription, tmp_path: Path
) -> None:
    """Before anything is copied: what is missing, or which file is another."""
    stick = tmp_path / "stick"
    shutil.copytree(folder, stick)
    (stick / "config.json").write_text("{}", encoding="utf-8")
    reason = refused(lambda: install(model, places, stick))
    assert reason == f"{stick / 'config.json'} is not the file that is meant: its hash is another"
    (stick / "config.json").unlink()
    (stick / WEIGHTS).unlink()
    reason = refused(lambda: install(model, places, stick))
    assert f"{stick} lacks {WEIGHTS}, config.json of Tests/tiny" in reason
    assert model.revision in reason
    assert not places.home.exists()


def test_a_file_that_changes_while_it_is_copied_is_refused(
    folder: Path,
    places: Places,
    model: ModelDescription,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its hash is taken once more, of what was copied."""
    stick = tmp_path / "stick"
    shutil.copytree(folder, stick)

    def change(*_: object) -> None:
        (stick / "tokenizer.json").write_text("{}", encoding="utf-8")

    monkeypatch.setattr("agent_journal.faces.models.installing._require_room", change)
    reason = refused(lambda: install(model, places, stick))
    assert "tokenizer.json changed while it was copied" in reason
    assert not (places.home / model.repository / "tokenizer.json").exists()


# out again


def test_what_was_installed_goes_and_what_others_put_there_stays(
    source: Source, folder: Path, places: Places, model: ModelDescription
) -> None:
    """Also half of a file, and what was made of the tokenizer; empty folders go, too."""
    home = places.home / model.repository
    home.mkdir(parents=True)
    shutil.copy(folder / "config.json", home)
    install(model, places, source)
    load_onnx(installed_source(model, places), places.prepared)
    (home / "onnx" / ".agent-journal-0123.part").write_bytes(b"half")
    gone, left = remove(model, places)
    assert {path.relative_to(home).as_posix() for path in gone} == {WEIGHTS, "tokenizer.json"}
    assert left == [home / "config.json"]
    assert set(contents(places.home)) == {f"{model.repository}/config.json"}
    assert not list((places.prepared or home).glob("*.sentencepiece"))
    assert remove(model, places) == ([], [home / "config.json"])
    (home / "config.json").unlink()
    remove(model, places)
    assert not home.parent.exists()


@pytest.mark.parametrize("note", ["{", "[]", '{"installed": 7}', '{"installed": [7]}'])
def test_a_note_that_says_nothing_removes_nothing(
    folder: Path, places: Places, model: ModelDescription, note: str
) -> None:
    """Somebody has written into it: files stay, since nobody knows whose they are."""
    shutil.copytree(folder, places.home / model.repository)
    (places.home / model.repository / NOTE).write_text(note, encoding="utf-8")
    gone, left = remove(model, places)
    assert gone == []
    assert len(left) == len(model.files)


def test_a_note_leads_to_no_other_file(
    source: Source, places: Places, model: ModelDescription, tmp_path: Path
) -> None:
    """Whatever it says, only a model's own files are removed."""
    install(model, places, source)
    precious = tmp_path / "precious"
    precious.write_text("mine", encoding="utf-8")
    note = places.home / model.repository / NOTE
    note.write_text(json.dumps({"installed": ["../../../precious", str(precious)]}), "utf-8")
    remove(model, places)
    assert precious.read_text(encoding="utf-8") == "mine"


def test_what_cannot_be_removed_is_told(
    source: Source, places: Places, model: ModelDescription
) -> None:
    """With the file and the reason."""
    install(model, places, source)
    target = places.home / model.repository / "config.json"
    target.unlink()
    target.mkdir()
    reason = refused(lambda: remove(model, places))
    assert f"{target} can't be removed" in reason
