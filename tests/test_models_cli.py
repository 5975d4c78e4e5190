"""`agent-journal model`: what it lists, fetches, chooses and removes, and searches after that."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stderr
from functools import partial
from pathlib import Path

import pytest
from tests.hub import Hub, serving
from tests.shell import Shell, documented, shape_of
from tests.tiny_models import describe, make_model

from agent_journal import assembly
from agent_journal.faces.cli import modelling, output
from agent_journal.faces.models import fetching, survey
from agent_journal.models import catalogue, sources
from agent_journal.models.catalogue import ModelDescription
from agent_journal.ports import Progress

USE = "google/universal-sentence-encoder-multilingual-v3"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model, as its repository has it."""
    return make_model(tmp_path_factory.mktemp("repository"))


@pytest.fixture
def tiny(repository: Path, monkeypatch: pytest.MonkeyPatch) -> ModelDescription:
    """The tiny model in the place of the original's, and another beside it."""
    seed = describe(repository)
    other = describe(repository, key="second", repository="Tests/second")
    for module in (catalogue, sources, survey):
        monkeypatch.setattr(module, "CATALOGUE", (seed, other))
    for module in (catalogue, modelling, survey):
        monkeypatch.setattr(module, "SEED", seed)
    return seed


@pytest.fixture
def hub(repository: Path, tiny: ModelDescription, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A server that has it, and that the environment names."""
    with serving(repository, tiny) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        yield hub


@pytest.fixture
def shell(home: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A command line for which no model is chosen."""
    shell = Shell(home, monkeypatch)
    monkeypatch.delenv("AGENT_JOURNAL_MODEL")
    return shell


def states(shell: Shell) -> dict[str, tuple[str, bool]]:
    """Return what the list says of each model: its state, and whether it is in use."""
    listed = shell("model", "list", "--json").json["models"]
    return {each["name"]: (each["state"], each["is_used"]) for each in listed}


def test_models_are_listed_with_the_one_in_use(shell: Shell, tiny: ModelDescription) -> None:
    """The bundled one first; what isn't here yet says how large it is."""
    outcome = shell("model", "list")
    assert outcome.code == 0
    assert outcome.out.splitlines()[0] == "* bundled  in the package"
    assert "  tiny  not installed\n    MIT; 1 MB; made by tests" in outcome.out
    assert states(shell) == {
        "bundled": ("in the package", True),
        "tiny": ("not installed", False),
        "second": ("not installed", False),
    }
    listed = shell("model", "list", "--json").json
    listed["models"] = listed["models"][1:]  # the first has no size
    assert shape_of(listed) == shape_of(documented("model list"))
    assert not (shell.home / ".cache").exists()
    assert tiny.size_bytes < 2_000_000


def test_an_installed_model_is_used_and_found_with(shell: Shell, hub: Hub) -> None:
    """`auto` takes the original's as soon as it is there; entries get its vectors, others stay."""
    shell.write("the payment webhook fails", "when it is retried")
    assert shell("status", "--json").json["model"] == USE
    assert shell("search", "payment", "--json").json["backlog"] == 0
    outcome = shell("model", "install", "tiny")
    assert outcome.code == 0, outcome.err
    assert outcome.out.endswith("tiny is installed; it is used from now on\n")
    assert outcome.out.count("fetched: ") == 3
    assert len(hub.asked) == 3
    assert states(shell)["tiny"] == ("installed", True)
    assert states(shell)["bundled"] == ("in the package", False)
    status = shell("status", "--json").json
    assert (status["model"], status["backlog"]) == ("Tests/tiny", 1)
    assert "backlog: 1 of 1 entry without a vector of this model" in shell("status").out
    page = shell("search", "payment webhook", "--json").json
    assert (page["mode"], page["backlog"], page["hits"][0]["title"]) == (
        "hybrid",
        0,
        "the payment webhook fails",
    )
    again = shell("model", "install", "tiny", "--json")
    assert shape_of(again.json) == shape_of(documented("model install"))
    assert [file["is_new"] for file in again.json["files"]] == [False] * 3
    assert len(hub.asked) == 3
    assert shell("status", "--embedding-model", "bundled", "--json").json["backlog"] == 0


def test_a_model_lies_in_the_cache_folder_that_is_configured(
    shell: Shell, hub: Hub, tiny: ModelDescription
) -> None:
    """As the original keeps it, so that both use one file."""
    assert hub
    shell.config.parent.mkdir(parents=True)
    shell.config.write_text('{"cacheDir": "models"}', encoding="utf-8")
    assert shell("model", "install", tiny.repository).code == 0
    place = shell.config.parent / "models" / "Tests" / "tiny" / "onnx" / "model_quantized.onnx"
    assert place.is_file()
    assert str(place) in shell("model", "list").out
    assert shell("status", "--json").json["model"] == "Tests/tiny"


def test_a_model_is_chosen_and_the_choice_undone(shell: Shell, hub: Hub, repository: Path) -> None:
    """In the configuration file, all else in it kept; vectors come now if they are wanted."""
    assert hub
    shell.config.parent.mkdir(parents=True)
    shell.config.write_text('{"mine": 1, "journal": {"enabled": true}}', encoding="utf-8")
    shell.write("redis", "is pinned")
    refused = shell("model", "use", "second")
    assert refused.code == 5
    assert "not installed; run: agent-journal model install second" in refused.err
    assert shell("model", "install", "second", "--from", str(repository)).code == 0
    chosen = shell("model", "use", "second", "--now")
    assert chosen.out == ("second (Tests/second) is used from now on\n1 entry given vectors\n")
    assert "hosts that are running" in chosen.err
    said = json.loads(shell.config.read_text(encoding="utf-8"))
    assert said == {"mine": 1, "journal": {"enabled": True, "model": "second"}}
    assert states(shell)["second"] == ("installed", True)
    assert shell("status", "--json").json["backlog"] == 0
    again = shell("model", "use", "second", "--now", "--json").json
    assert (again["changed"], again["embedded"]) == (False, 0)
    assert shape_of(again) == shape_of(documented("model use"))
    assert shell("model", "use", "none").out == "none: words alone count\n"
    assert shell("model", "use", "auto").out.startswith(f"auto ({USE}) is used from now on")
    shell.write("more", "text")
    assert shell("model", "use", "auto", "--now").out.endswith("2 entries given vectors\n")


def test_a_folder_is_chosen(shell: Shell, tiny: ModelDescription, tmp_path: Path) -> None:
    """Any export of sentence-transformers, by its path; a folder without one is refused."""
    folder = make_model(tmp_path / "mine", seed=5)
    assert shell("model", "use", str(folder)).code == 0
    assert states(shell)[str(folder)] == ("a folder", True)
    assert f"* {folder}  a folder" in shell("model", "list").out
    assert shell("status", "--json").json["model"] == "mine"
    outcome = shell("model", "use", str(tmp_path))
    assert outcome.code == 5
    assert "there is no model in" in outcome.err
    assert json.loads(shell.config.read_text("utf-8"))["journal"]["model"] == str(folder)
    assert tiny


def test_a_wrong_name_is_a_wrong_command(shell: Shell, tiny: ModelDescription) -> None:
    """The names that go are listed."""
    assert tiny
    for command in ("install", "remove"):
        outcome = shell("model", command, "gpt")
        assert outcome.code == 2
        assert "there is no model 'gpt' to install" in outcome.err
    outcome = shell("model", "use", "gpt")
    assert outcome.code == 2
    assert "it must be one of: auto, bundled, none" in outcome.err
    assert shell("model").code == 2


def test_the_environment_wins_and_is_told(
    shell: Shell, tiny: ModelDescription, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever chooses one while the variable names another would wonder."""
    assert tiny
    monkeypatch.setenv("AGENT_JOURNAL_MODEL", "none")
    outcome = shell("model", "use", "bundled")
    assert outcome.code == 0
    assert "AGENT_JOURNAL_MODEL says none, and wins" in outcome.err


def test_a_broken_configuration_is_not_written_into(shell: Shell, tiny: ModelDescription) -> None:
    """It is to be mended first."""
    assert tiny
    shell.config.parent.mkdir(parents=True)
    shell.config.write_text("{", encoding="utf-8")
    outcome = shell("model", "use", "none")
    assert outcome.code == 6
    assert "nothing was changed" in outcome.err
    shell.config.unlink()
    shell.config.parent.rmdir()
    shell.config.parent.write_text("a file", encoding="utf-8")
    outcome = shell("model", "use", "none")
    assert outcome.code == 6


def test_a_model_is_removed(shell: Shell, hub: Hub, repository: Path) -> None:
    """What was installed goes, the bundled one takes over; others' files stay and are named."""
    assert hub
    shell("model", "install", "tiny")
    removed = shell("model", "remove", "tiny", "--json")
    assert (removed.code, len(removed.json["removed"])) == (0, 3)
    assert shape_of(removed.json) == shape_of(documented("model remove"))
    assert states(shell)["tiny"] == ("not installed", False)
    assert shell("status", "--json").json["model"] == USE
    nothing = shell("model", "remove", "tiny")
    assert nothing.code == 1
    assert nothing.out == "nothing of tiny was installed by agent-journal\n"
    others = shell.home / ".cache" / "huggingface" / "Tests" / "tiny"
    shutil.copytree(repository, others)
    left = shell("model", "remove", "tiny")
    assert left.out.count("others' file, left alone: ") == 3
    assert states(shell)["tiny"] == ("installed", True)
    shell("model", "install", "second", "--from", str(repository))
    shell("model", "use", "second")
    outcome = shell("model", "remove", "second")
    assert "removed: " in outcome.out
    assert "agent-journal model use auto" in outcome.err


def test_an_installation_that_fails_changes_nothing(shell: Shell, hub: Hub) -> None:
    """The error says what, and `auto` stays with the bundled one."""
    hub.statuses = [404]
    outcome = shell("model", "install", "tiny")
    assert outcome.code == 5
    assert f"tiny: {hub.address}" in outcome.err
    assert "answers 404" in outcome.err
    assert shell("status", "--json").json["model"] == USE
    hub.cuts = [1000, 0, 0, 0]
    assert "install it again to go on" in shell("model", "install", "tiny").err
    assert states(shell)["tiny"] == ("not installed", False)


def test_a_damaged_model_makes_way_for_the_bundled_one(shell: Shell, hub: Hub) -> None:
    """With a warning that says how to mend it; chosen by name, words alone are left."""
    shell("model", "install", "tiny")
    weights = next((shell.home / ".cache").rglob("model_quantized.onnx"))
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    outcome = shell("status")
    assert f"model: {USE}" in outcome.out
    assert "the bundled model stands in" in outcome.err
    assert "run: agent-journal model install tiny" in outcome.err
    shell.write("redis", "is pinned")
    page = shell("search", "redis", "--embedding-model", "tiny", "--json").json
    assert page["mode"] == "lexical"
    assert "is not the file that is meant" in page["reason"]
    asked = len(hub.asked)
    assert shell("model", "install", "tiny").code == 0
    assert len(hub.asked) == asked + 1
    assert shell("status", "--json").json["model"] == "Tests/tiny"


def test_without_the_extra_the_bundled_model_goes_on(
    shell: Shell, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that are there don't matter then; the list and the installation say what is lacking."""
    monkeypatch.setattr(assembly, "find_spec", lambda name: None if name == "onnxruntime" else name)
    outcome = shell("model", "install", "tiny")
    assert outcome.code == 0
    assert "onnxruntime must be there to run it: pip install 'agent-journal[onnx]'" in outcome.err
    listed = shell("model", "list")
    assert "  tiny  installed" in listed.out
    assert "* bundled" in listed.out
    assert "run by onnxruntime, to be had with: pip install" in listed.err
    status = shell("status")
    assert (f"model: {USE}" in status.out, status.err) == (True, "")
    assert hub


def test_without_a_home_no_model_is_looked_for(
    shell: Shell, tiny: ModelDescription, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listing goes on; what needs a place is told why there is none."""
    assert tiny
    monkeypatch.setattr("agent_journal.config._Given.model_places", lambda *_: None)
    assert states(shell)["tiny"] == ("not installed", False)
    assert "no home directory is known" in shell("model", "install", "tiny").err
    page = shell("status", "--embedding-model", "tiny", "--json").json
    assert "no home directory is known" in page["model_reason"]


def test_nothing_but_an_installation_is_ever_fetched(
    shell: Shell, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other command comes near the module that opens connections."""

    def fail(*_: object) -> None:
        raise AssertionError("a connection")

    shell("model", "install", "tiny")
    asked = len(hub.asked)
    monkeypatch.setattr(fetching, "_opener", fail)
    shell.write("redis", "is pinned")
    for command in ("search redis", "status", "reindex", "model list", "model use tiny --now"):
        assert shell(*command.split()).code == 0, command
    assert shell("model", "remove", "tiny").code == 0
    assert len(hub.asked) == asked
    assert "agent_journal.faces.models.fetching" in sys.modules


def test_half_of_a_model_is_called_so(shell: Shell, hub: Hub) -> None:
    """It is not used, and one more installation brings what is lacking."""
    shell("model", "install", "tiny")
    next((shell.home / ".cache").rglob("tokenizer.json")).unlink()
    assert states(shell)["tiny"] == ("incomplete", False)
    assert shell("status", "--json").json["model"] == USE
    asked = len(hub.asked)
    shell("model", "install", "tiny")
    assert len(hub.asked) == asked + 1
    assert states(shell)["tiny"] == ("installed", True)


def test_a_choice_that_cannot_be_kept_is_told(shell: Shell) -> None:
    """With the file; and without a journal there is nothing to make vectors of."""
    outcome = shell("model", "use", "none", "--config", "/proc/nothing/here.json")
    assert outcome.code == 6
    assert "/proc/nothing/here.json: can't be written" in outcome.err
    assert shell("model", "use", "bundled", "--now", "--json").json["embedded"] == 0


def test_a_download_shows_its_bytes(
    shell: Shell, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal a bar tells how much has come of how much."""
    shown = _Terminal()
    monkeypatch.setattr(output, "BAR_DELAY_S", 0.0)
    monkeypatch.setattr(output, "progress_bar", partial(_bar_on, shown, output.progress_bar))
    monkeypatch.setattr(modelling, "progress_bar", output.progress_bar)
    assert shell("model", "install", "tiny").code == 0
    assert "Fetching tiny" in shown.getvalue()
    assert "MB" in shown.getvalue()
    assert hub


class _Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@contextmanager
def _bar_on(
    terminal: _Terminal,
    bar: Callable[..., AbstractContextManager[Progress | None]],
    label: str,
    **options: bool,
) -> Iterator[Progress | None]:
    """Draw a bar on a terminal while everything else goes where it went."""
    with redirect_stderr(terminal), bar(label, **options) as progress:
        yield progress
