from __future__ import annotations

import json
import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_journal.config import (
    Settings,
    SuggestedTag,
    load_settings,
    model_called,
    model_names,
    turned_on,
    with_model,
)
from agent_journal.configfile import SIZE_LIMIT_BYTES
from agent_journal.errors import ConfigError
from agent_journal.models.catalogue import SEED
from agent_journal.models.places import Places

NOBODY = 65534


@pytest.fixture
def config_path(home: Path) -> Path:
    path = home / ".config" / "opencode" / "agent-memory.json"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def load(home: Path, config_path: Path) -> Callable[[object], Settings]:
    """Give a function that loads the settings of one JSON document."""

    def load(document: object) -> Settings:
        config_path.write_text(json.dumps(document), encoding="utf-8")
        return load_settings({"HOME": str(home)})

    return load


def error_of(settings: Settings) -> ConfigError:
    """Return a file's error, having checked that nothing else of the file counts."""
    assert settings.error is not None
    assert not settings.enabled
    assert settings.tags == ()
    assert settings.cache_dir is None
    return settings.error


# --- where things are -----------------------------------------------------------------------------


def test_defaults_are_where_the_original_has_them(home: Path) -> None:
    """Without any configuration the journal is beside the original's config, and disabled."""
    assert load_settings({"HOME": str(home), "XDG_CONFIG_HOME": "/elsewhere"}) == Settings(
        folder=home / ".config" / "opencode" / "journal",
        index_folder=home / ".cache" / "agent-journal",
        config_path=home / ".config" / "opencode" / "agent-memory.json",
        state_folder=home / ".local" / "state" / "agent-journal",
        model_places=Places(
            home=home / ".cache" / "agent-journal" / "models",
            others=(home / ".cache" / "huggingface",),
            hubs=(home / ".cache" / "huggingface" / "hub",),
            prepared=home / ".cache" / "agent-journal" / "models" / "prepared",
        ),
    )


def test_models_are_looked_for_where_the_environment_says(home: Path) -> None:
    """First in cacheDir; the hub's own variables move its cache."""
    path = home / "mine.json"
    path.write_text('{"cacheDir": "models"}', encoding="utf-8")
    environ = {"HOME": str(home), "AGENT_JOURNAL_CONFIG": str(path), "XDG_CACHE_HOME": "/x"}
    own = Path("/x/agent-journal/models")
    cache = home / ".cache" / "huggingface"
    assert load_settings(environ).model_places == Places(
        home / "models", (own, cache), (cache / "hub",), own / "prepared"
    )
    environ |= {"HF_HOME": "/hf", "HF_HUB_CACHE": "/hub"}
    assert load_settings(environ).model_places == Places(
        home / "models", (own, Path("/hf")), (Path("/hub"), Path("/hf/hub")), own / "prepared"
    )


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("auto", "auto"),
        ("none", "none"),
        (SEED.key.upper(), SEED.key),
        (SEED.repository, SEED.key),
        ("Paraphrase-Multilingual-MiniLM-L12-v2", SEED.key),
        ("/srv/models/mine", "/srv/models/mine"),
        ("./mine", "HERE/mine"),
        ("models/mine", "HERE/models/mine"),
        ("~/mine", "HOME/mine"),
    ],
)
def test_a_model_is_a_name_or_a_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch, text: str, model: str
) -> None:
    """Names are those of the catalogue, in any case, or of their repositories; paths are whole."""
    monkeypatch.chdir(home)
    expected = model.replace("HERE", str(home)).replace("HOME", str(home))
    environ = {"HOME": str(home)}
    assert model_called(text, environ) == expected
    assert load_settings(environ, model=text).model == expected
    assert load_settings({**environ, "AGENT_JOURNAL_MODEL": text}).model == expected


def test_a_folder_in_the_file_is_meant_from_there(load: Callable[[object], Settings]) -> None:
    """A relative path of a model goes from the file's folder, as all of its paths do."""
    settings = load({"journal": {"model": "./mine"}})
    assert settings.model == str(settings.config_path.parent / "mine")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, '{\n  "journal": {\n    "model": "none"\n  }\n}\n'),
        ("{}", '{\n  "journal": {\n    "model": "none"\n  }\n}\n'),
        ('{"journal": {"model": "none"}}', None),
        ('{"journal":{ "model" : "auto" },\n"x":1}', '{"journal":{ "model" : "none" },\n"x":1}'),
    ],
)
def test_a_model_is_put_into_the_file(
    config_path: Path, before: str | None, after: str | None
) -> None:
    """Nothing else in it changes, and nothing at all when it is there already."""
    if before is not None:
        config_path.write_text(before, encoding="utf-8")
    assert with_model(config_path, "none") == after


def test_nothing_is_created(home: Path) -> None:
    """Loading settings leaves the home directory as it was."""
    load_settings({"HOME": str(home)})
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("variable", "attribute", "default"),
    [
        ("XDG_CACHE_HOME", "index_folder", ".cache"),
        ("XDG_STATE_HOME", "state_folder", ".local/state"),
    ],
)
def test_xdg_folders_count_when_absolute(
    home: Path, variable: str, attribute: str, default: str
) -> None:
    """An absolute XDG folder is used; a relative or empty one is ignored, as its standard says."""
    for value, expected in [("/x", Path("/x")), ("x", home / default), ("", home / default)]:
        settings = load_settings({"HOME": str(home), variable: value})
        assert getattr(settings, attribute) == expected / "agent-journal"


def test_flags_win_over_the_environment_and_that_over_the_file(home: Path) -> None:
    """Each setting is taken from the first of flag, environment and file that gives it."""
    path = home / "mine.json"
    file = {"journal": {"folder": "/file", "index": "/file-index", "model": "none"}}
    path.write_text(json.dumps(file), encoding="utf-8")
    environ = {"HOME": str(home), "AGENT_JOURNAL_CONFIG": str(path)}
    settings = load_settings(environ)
    assert (str(settings.folder), str(settings.index_folder)) == ("/file", "/file-index")
    assert settings.model == "none"
    assert not settings.folder_is_explicit

    environ |= {
        "AGENT_JOURNAL_DIR": "/env",
        "AGENT_JOURNAL_INDEX": "/env-index",
        "AGENT_JOURNAL_MODEL": "bundled",
    }
    settings = load_settings(environ)
    assert (str(settings.folder), str(settings.index_folder)) == ("/env", "/env-index")
    assert settings.model == "bundled"
    assert settings.folder_is_explicit

    settings = load_settings(
        environ, journal="/flag", index="/flag-index", model="none", config="/no/such/file"
    )
    assert (str(settings.folder), str(settings.index_folder)) == ("/flag", "/flag-index")
    assert settings.model == "none"
    assert settings.folder_is_explicit
    assert settings.config_path == Path("/no/such/file")


def test_empty_variables_count_as_unset(home: Path) -> None:
    """A variable set to nothing changes nothing."""
    names = ("DIR", "CONFIG", "INDEX", "MODEL")
    environ = {"HOME": str(home)} | {f"AGENT_JOURNAL_{name}": "" for name in names}
    assert load_settings(environ) == load_settings({"HOME": str(home)})


def test_a_tilde_is_expanded_everywhere(
    home: Path, load: Callable[[object], Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``~`` is the home directory in flags, variables and the file; ``~user`` is that user's."""
    document = {"cacheDir": "~/models", "journal": {"folder": "~", "index": "~//i"}}
    settings = load(document)
    assert settings.cache_dir == home / "models"
    assert settings.folder == home
    assert settings.index_folder == home / "i"
    user = pwd.getpwuid(os.getuid())
    other = load_settings(
        {"HOME": str(home), "AGENT_JOURNAL_DIR": f"~{user.pw_name}/j"}, index="~/there"
    )
    assert other.folder == Path(user.pw_dir) / "j"
    assert other.index_folder == home / "there"
    monkeypatch.setenv("HOME", "/not/this/one")
    assert load_settings({"HOME": str(home)}, journal="~").folder == home


def test_relative_paths_are_meant_from_where_they_are_given(
    config_path: Path,
    tmp_path: Path,
    load: Callable[[object], Settings],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A flag's relative path is meant from the working directory, the file's from its folder."""
    assert load({"journal": {"folder": "notes"}}).folder == config_path.parent / "notes"
    monkeypatch.chdir(tmp_path)
    assert load_settings(os.environ, journal="notes").folder == tmp_path / "notes"


def test_a_lost_working_directory_matters_to_relative_paths_only(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder that was removed, an absolute path works and a relative one is refused."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert load_settings({"HOME": str(home)}, journal="/j").folder == Path("/j")
    with pytest.raises(ConfigError, match="--journal: is relative, and the working directory"):
        load_settings({"HOME": str(home)}, journal="j")


def test_the_user_database_stands_in_for_home() -> None:
    """Without HOME, or with one that is no absolute path, the user's directory is used."""
    expected = Path(pwd.getpwuid(os.getuid()).pw_dir)
    for environ in ({}, {"HOME": ""}, {"HOME": "somewhere"}):
        settings = load_settings(environ, config="/no/such/file")
        assert settings.folder == expected / ".config" / "opencode" / "journal"


def test_a_user_without_any_home_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """With neither HOME nor a user the error says what to set, and what was given suffices."""

    def unknown(_: int) -> pwd.struct_passwd:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)  # no test can run as a user who isn't there
    with pytest.raises(ConfigError, match=r"^HOME: is not set .*AGENT_JOURNAL_DIR"):
        load_settings({})
    settings = load_settings({}, journal="/j", config="/c", index="/i")
    assert settings.state_folder is None
    assert settings.folder == Path("/j")


@pytest.mark.parametrize(
    ("flags", "environ", "message"),
    [
        ({"journal": ""}, {}, "--journal: is empty; give a path"),
        ({"config": "a\0b"}, {}, "--config: holds U+0000"),
        ({"index": "~no-such-user/x"}, {}, "--index: names the unknown user 'no-such-user'"),
        (
            {"model": "gpt"},
            {},
            "--embedding-model: is 'gpt'; it must be one of: auto, bundled, none,",
        ),
        ({}, {"AGENT_JOURNAL_MODEL": "None"}, "AGENT_JOURNAL_MODEL: is 'None'; it must be"),
        ({}, {"AGENT_JOURNAL_DIR": " "}, "AGENT_JOURNAL_DIR: is empty"),
        ({}, {"AGENT_JOURNAL_CONFIG": "\ud800"}, "AGENT_JOURNAL_CONFIG: holds U+D800"),
    ],
)
def test_a_bad_flag_or_variable_is_named(
    home: Path, flags: dict[str, str], environ: dict[str, str], message: str
) -> None:
    """What a person just typed is refused at once, by its name."""
    with pytest.raises(ConfigError) as caught:
        load_settings({"HOME": str(home), **environ}, **flags)
    assert str(caught.value).startswith(message)


# --- what the file says ---------------------------------------------------------------------------


def test_the_file_of_the_original_is_understood(load: Callable[[object], Settings]) -> None:
    """The original's keys are read; a tag may lack its description; unknown keys mean nothing."""
    settings = load(
        {
            "cacheDir": "/models",
            "journal": {
                "enabled": True,
                "tags": [
                    {"name": "perf", "description": "Where\ntime goes", "colour": 3},
                    {"name": " debugging "},
                    {"name": "PERF", "description": "again"},
                ],
                "future": {"enabled": "yes"},
            },
            "unknown": [[[[[{"name": 1}]]]], 10**400],
        }
    )
    assert settings.error is None
    assert settings.enabled
    assert settings.cache_dir == Path("/models")
    assert settings.tags == (SuggestedTag("perf", "Where time goes"), SuggestedTag("debugging"))


def test_the_journal_is_disabled_unless_the_file_enables_it(
    load: Callable[[object], Settings],
) -> None:
    """Only ``true`` enables the journal, and a file that leaves it out is no error."""
    documents: list[dict[str, object]] = [
        {},
        {"journal": {}},
        {"journal": {"enabled": False}},
        {"enabled": True},
    ]
    for document in documents:
        settings = load(document)
        assert not settings.enabled
        assert settings.error is None


@pytest.mark.parametrize(
    ("text", "key", "line", "reason"),
    [
        ("[]", "", None, "is a list; it must be an object"),
        ("null", "", None, "is null; it must be an object"),
        ('"x"', "", None, "is a string; it must be an object"),
        ('{\n"journal": true}', "journal", 2, "is true or false; it must be an object"),
        ('{"journal":{\n\n"enabled":\n"yes"}}', "journal.enabled", 3, "is a string; it must be"),
        ('{"journal": {"enabled": 1}}', "journal.enabled", 1, "is a number; it must be true or"),
        ('{"journal": {"enabled": 1.5}}', "journal.enabled", 1, "is a number"),
        ('{"journal": {"enabled": null}}', "journal.enabled", 1, "is null"),
        ('{"journal":{"tags":{}}}', "journal.tags", 1, "is an object; it must be a list"),
        ('{"journal":{"tags":[\n"a"]}}', "journal.tags[0]", 2, "is a string; it must be an object"),
        (
            '{"a":[{"b":[1,{}]}],\n"journal":{"tags":[\n{"name":"{[,:"},\n{"name":5}]}}',
            "journal.tags[1].name",
            4,
            "is a number; it must be a string",
        ),
        (
            '{"journal":{"tags":[\n{"name":"a\\"b"},\n{"description":"x"}]}}',
            "journal.tags[1].name",
            3,
            "is missing or empty",
        ),
        ('{"journal":{"tags":[{"name":" "}]}}', "journal.tags[0].name", 1, "is missing or empty"),
        (
            '{"journal":{"tags":[{"name":"a",\n"description":[]}]}}',
            "journal.tags[0].description",
            2,
            "is a list; it must be a string",
        ),
        ('{"journal":{"tags":[{"name":"\\ud800"}]}}', "journal.tags[0].name", 1, "holds U+D800"),
        ('{"journal":{"folder":["x"]}}', "journal.folder", 1, "is a list; it must be a string"),
        ('{"journal":{"folder":""}}', "journal.folder", 1, "is empty; give a path"),
        ('{"journal":{"index":"a\\u0000"}}', "journal.index", 1, "holds U+0000"),
        ('{"journal":{"index":"~no-such-user"}}', "journal.index", 1, "names the unknown user"),
        ('{"journal":{\n"model":"big"}}', "journal.model", 2, "is 'big'; it must be one of"),
        ('{"journal":{"model":{}}}', "journal.model", 1, "is an object; it must be a string"),
        ('{"cacheDir":7}', "cacheDir", 1, "is a number; it must be a string"),
        ('{"journal":{},\n"journal":{}}', "journal", 2, "stands here a second time"),
        (
            '{"journal":{"enabled":true,\n"\\u0065nabled":false}}',
            "journal.enabled",
            2,
            "stands here a second time",
        ),
        (
            '{"journal":{"tags":[{},{"name":"a",\n"name":"b"}]}}',
            "journal.tags[1].name",
            2,
            "stands here a second time",
        ),
        (" \n", "", 2, "is empty; put {} there, or remove it"),
        ('{\n "journal": {\n  enabled: true}}', "", 3, "is not JSON: expecting property name"),
        ('{"a": 1}\n{', "", 2, "is not JSON: extra data"),
        ('{"a": NaN}', "", None, "is not JSON: NaN is no JSON number"),
        ("[" * 200_000, "", None, "is nested too deeply"),
        (" " * (SIZE_LIMIT_BYTES + 1), "", None, "is larger than 1,048,576 bytes"),
        ("\ufeff{}", "", 1, "starts with a byte order mark"),
    ],
)
def test_what_is_wrong_in_the_file_is_named_with_its_line(
    home: Path, config_path: Path, text: str, key: str, line: int | None, reason: str
) -> None:
    """A file with a mistake is reported with path, dotted key and line, and disables the tools."""
    config_path.write_text(text, encoding="utf-8")
    error = error_of(load_settings({"HOME": str(home)}))
    assert error.path == str(config_path)
    assert error.key == key
    assert error.line == line
    assert error.reason.startswith(reason)
    assert str(error).startswith(f"{config_path}:{line}: " if line else f"{config_path}: ")


def test_repeated_keys_that_mean_nothing_to_us_are_left_alone(
    home: Path, config_path: Path
) -> None:
    """Only a key of ours that stands twice leaves open what was meant."""
    text = '{"x":1,"x":2,"journal":{"x":1,"x":{},"enabled":true},"journal.enabled":3}'
    config_path.write_text(text, encoding="utf-8")
    settings = load_settings({"HOME": str(home)})
    assert settings.error is None
    assert settings.enabled


def test_a_mistake_leaves_defaults_and_what_was_given_elsewhere(
    home: Path, config_path: Path
) -> None:
    """When the file can't be used nothing in it counts, but flags and environment do."""
    text = '{"journal": {"folder": "/file", "model": "none", "enabled": true, "tags": 3}}'
    config_path.write_text(text, encoding="utf-8")
    settings = load_settings({"HOME": str(home), "AGENT_JOURNAL_INDEX": "/i"})
    assert error_of(settings).key == "journal.tags"
    assert settings.folder == home / ".config" / "opencode" / "journal"
    assert settings.model == "auto"
    assert settings.index_folder == Path("/i")
    assert not settings.folder_is_explicit


def test_text_that_is_not_utf8_is_named_with_its_line(home: Path, config_path: Path) -> None:
    """Bytes of another encoding are an error on their line."""
    config_path.write_bytes(b'{\n"cacheDir": "caf\xe9"}')
    error = error_of(load_settings({"HOME": str(home)}))
    assert (error.line, error.reason) == (2, "is not UTF-8")


def test_what_is_no_file_is_an_error_and_never_waited_for(home: Path, config_path: Path) -> None:
    """A folder, a pipe, a dangling link or a path through a file can't be read, and say so."""
    config_path.mkdir()
    assert error_of(load_settings({"HOME": str(home)})).reason == "is not a file"
    config_path.rmdir()
    os.mkfifo(config_path)
    assert error_of(load_settings({"HOME": str(home)})).reason == "is not a file"
    config_path.unlink()
    config_path.symlink_to("nowhere.json")
    assert "link to a file that is missing" in error_of(load_settings({"HOME": str(home)})).reason
    config_path.unlink()
    config_path.write_text("{}", encoding="utf-8")
    through_a_file = load_settings({"HOME": str(home)}, config=str(config_path / "x"))
    assert error_of(through_a_file).reason == "can't be read: Not a directory"


def test_a_file_that_may_not_be_read_is_an_error(config_path: Path, tmp_path: Path) -> None:
    """A file without permission for its reader is reported, not taken for a missing one."""
    config_path = tmp_path / "private.json"
    config_path.write_text('{"journal": {"enabled": true}}', encoding="utf-8")
    config_path.chmod(0)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - a process of its own, which drops its rights
        message = "no error"
        try:
            os.chdir(tmp_path)  # the path to it may lead through folders closed to others
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            settings = load_settings({"HOME": "/nonexistent"}, config="private.json")
            message = settings.error.reason if settings.error else message
        finally:
            os.write(writer, message.encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as said:
        assert said.read() == "can't be read: Permission denied"
    os.waitpid(child, 0)


_PIECES = [
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b'"',
    b"\\",
    b"\n",
    b'"journal"',
    b"true",
    b"{}",
    b"9",
]
_keys = st.sampled_from(
    ["journal", "enabled", "tags", "name", "description", "folder", "index", "model", "cacheDir"]
)
_json = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(_keys | st.text(), inner),
    max_leaves=6,
)
_shaped = st.fixed_dictionaries(
    {},
    optional={
        "cacheDir": _json,
        "journal": st.fixed_dictionaries(
            {},
            optional={
                "enabled": st.booleans() | _json,
                "folder": st.text() | _json,
                "index": st.text() | _json,
                "model": st.sampled_from(model_names()) | _json,
                "tags": st.lists(
                    st.fixed_dictionaries({"name": st.text()}, optional={"description": _json})
                )
                | _json,
            },
        )
        | _json,
    },
)


@given(document=_json | _shaped)
@example(document={"journal": {"folder": "~\ud800"}})
@example(document={"journal": {"folder": "~" + "x" * 5000}})
def test_any_json_document_gives_settings(
    tmp_path_factory: pytest.TempPathFactory, document: object
) -> None:
    """Whatever JSON stands in the file, loading gives settings that can be used, or an error."""
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    settings = load_settings({"HOME": "/home/x"}, config=str(path))
    assert settings.folder.is_absolute()
    assert settings.index_folder.is_absolute()
    os.fsencode(settings.folder)
    for tag in settings.tags:
        f"{tag.name}{tag.description}".encode()
    if settings.error:
        error_of(settings)


@given(data=st.binary() | st.lists(st.sampled_from(_PIECES)).map(b"".join))
def test_any_bytes_give_settings(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Whatever bytes stand in the file, nothing but an error in the settings comes of it."""
    path = tmp_path_factory.getbasetemp() / "any.bytes"
    path.write_bytes(data)
    settings = load_settings({"HOME": "/home/x"}, config=str(path))
    if settings.error is None:
        assert isinstance(json.loads(data.decode("utf-8")), dict)


@given(document=st.dictionaries(_keys, _json))
def test_lines_are_those_of_the_keys(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, object]
) -> None:
    """However the rest of the file looks, an error's line is that of the key it names."""
    path = tmp_path_factory.getbasetemp() / "lines.json"
    document.pop("journal", None)
    document.pop("cacheDir", None)
    document["journal"] = {"before": 1, "enabled": "marked"}
    document["after"] = [1]
    text = json.dumps(document, indent=1)
    path.write_text(text, encoding="utf-8")
    error = error_of(load_settings({"HOME": "/home/x"}, config=str(path)))
    assert error.line is not None
    assert '"enabled": "marked"' in text.split("\n")[error.line - 1]


# --- turning the journal on -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, '{\n  "journal": {\n    "enabled": true\n  }\n}\n'),
        ("{ }\n", '{\n  "journal": {\n    "enabled": true\n  }\n}\n'),
        (
            '{\r\n  "cacheDir": "~",\r\n  "x": [1e400]\r\n}',
            '{\r\n  "journal": {"enabled": true},\r\n  "cacheDir": "~",\r\n  "x": [1e400]\r\n}',
        ),
        ('{"journal": {"enabled": false, "x": 1}}', '{"journal": {"enabled": true, "x": 1}}'),
        ('{"journal": {"enabled": true}}', None),
    ],
)
def test_turning_on_changes_nothing_else(
    config_path: Path, home: Path, before: str | None, after: str | None
) -> None:
    """Other keys and the layout stay as they are, and what comes out turns the tools on."""
    if before is not None:
        config_path.write_bytes(before.encode())
    assert turned_on(config_path) == after
    assert config_path.exists() is (before is not None)
    config_path.write_bytes((after or before or "").encode())
    assert load_settings({"HOME": str(home)}).enabled
    assert turned_on(config_path) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is not JSON"),
        ("[]", "is a list"),
        ('{"journal": 1}', "journal: is a number"),
        ('{"journal": {"enabled": "yes"}}', "journal.enabled: is a string"),
        ('{"journal": {}, "journal": {}}', "journal: stands here a second time"),
    ],
)
def test_what_cannot_be_used_is_not_turned_on(config_path: Path, text: str, reason: str) -> None:
    """Nobody knows what it would mean then."""
    config_path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=reason):
        turned_on(config_path)
