"""Which repository a folder belongs to, as real git tells."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_journal.faces import repository
from agent_journal.faces.repository import identity, normalised, work_tree


@pytest.fixture(autouse=True)
def _plain_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let git know nothing of this machine's user and settings."""
    settings = tmp_path / "settings"
    settings.write_text("[user]\n\tname = Ada\n\temail = ada@example.com\n", encoding="utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def git(folder: Path, *arguments: str, at: int = 1_700_000_000) -> str:
    """Run git in a folder, and return what it prints."""
    date = {"GIT_AUTHOR_DATE": f"{at} +0000", "GIT_COMMITTER_DATE": f"{at} +0000"}
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, **date},
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    return done.stdout.strip()


def commit(folder: Path, message: str, at: int = 1_700_000_000) -> str:
    """Add a commit to a repository, and return its id."""
    git(folder, "commit", "--quiet", "--allow-empty", "-m", message, at=at)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Give a repository without a commit and without a remote."""
    folder = tmp_path / "shop"
    git(tmp_path, "init", "--quiet", "-b", "main", str(folder))
    return folder


SHOP = "example.com/acme/shop"


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/acme/shop",
        "https://example.com/acme/shop.git",
        "https://EXAMPLE.com:443//acme/shop.git/",
        "http://example.com./acme/shop?token=secret#secret",
        "https://ada@example.com/acme/shop.git",
        "https://ada:secret@example.com:8443/acme/shop.git?token=secret",
        "https://ada:se%40cr%2Fet@example.com/acme/shop",
        "https://ada:se@cret@example.com/acme/shop",
        "HTTPS://x-token:secret@example.com/acme/shop/.git",
        "ssh://git@example.com/acme/shop.git",
        "ssh://git@example.com:2222/acme/shop",
        "git+ssh://example.com/acme/shop.GIT",
        "git://example.com/acme/shop.git",
        "git@example.com:acme/shop.git",
        "git@Example.Com:/acme/shop",
        "example.com:acme/shop",
        "[git@example.com:2222]:acme/shop.git",
        "[example.com]:acme/shop",
        " git@example.com:acme/shop.git?x=secret\n",
    ],
)
def test_one_remote_has_one_name(url: str) -> None:
    """However it is reached; what opens the door is left out."""
    assert normalised(url) == SHOP


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://example.com/Acme/My%20Shop.git", "example.com/Acme/My Shop"),
        ("https://example.com/a/b/c/shop", "example.com/a/b/c/shop"),
        ("ssh://git@[2001:DB8::1]:22/acme/shop", "[2001:db8::1]/acme/shop"),
        ("git@[::1]:acme/shop", "[::1]/acme/shop"),
        ("http://127.0.0.1:8080/git/acme/shop", "127.0.0.1/git/acme/shop"),
        ("https://münchen.example/ß", "münchen.example/ß"),
        ("ssh://git@ssh.github.com:443/acme/shop.git", "github.com/acme/shop"),
        ("git@ssh.dev.azure.com:v3/acme/web/shop", "dev.azure.com/acme/web/shop"),
        ("https://acme@dev.azure.com/acme/web/_git/shop", "dev.azure.com/acme/web/shop"),
        ("nas:git/shop", "nas/git/shop"),
        ("https://example.com/~ada/shop", "example.com/~ada/shop"),
    ],
)
def test_a_remote_is_its_host_and_path(url: str, name: str) -> None:
    """The path is kept as it stands, but for what it needn't have."""
    assert normalised(url) == name


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/srv/git/shop.git",
        "../shop",
        "./a:b",
        "shop",
        "file:///srv/git/shop.git",
        "FILE://host/srv/shop.git",
        "C:\\src\\shop",
        "C:/src/shop",
        "ext::ssh -i key git@example.com %S /acme/shop",
        "hg::https://example.com/acme/shop",
        "https://",
        "https:///acme/shop",
        "https://example.com",
        "https://example.com/",
        "https://example.com/.git",
        "git@example.com:",
        "https://example.com/acme/\x1b[2Jshop",
        "https://example.com/acme/%00shop",
        "https://example.com/acme/shop\nother",
        "git@example.com:acme/\udce9",
        "https://exam ple.com/acme/shop",
        "https://example.com/" + "x" * 1000,
    ],
)
def test_what_is_nowhere_else_has_no_name(url: str) -> None:
    """A path on this machine means nothing on another; a broken or hostile URL nothing at all."""
    assert normalised(url) == ""


@pytest.mark.parametrize(
    "url",
    [
        "https://ada:sec/ret@example.com/acme/shop",
        "https://ada:1234/secret@example.com/acme/shop",
        "https://ada:secret/example.com/acme",
        "ada:secret@example.com:acme/shop",
        "ssh://ada:secret%2F@example.com:acme/shop",
        "https://ada:secret",
        "https://ada:12/secret?x@example.com/acme/shop",
        "https://ada:12/secret#x%40example.com/acme/shop",
        "ada:secret?x@example.com:acme/shop",
        "https://example.com/%61da%3Asecret%40example.com/shop",
    ],
)
def test_a_broken_url_gives_no_password_away(url: str) -> None:
    """Where a password can't be told from a path there is no name."""
    assert "secret" not in normalised(url).replace("%", "")
    assert normalised(url) in ("", "example.com/acme/shop")


PART = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/?#@%"))


@given(PART, PART, st.sampled_from(["https", "ssh", "git", "http"]))
def test_a_password_is_never_in_the_name(user: str, password: str, scheme: str) -> None:
    """Whatever it is made of."""
    secret = f"<{password}>"
    assert secret not in normalised(f"{scheme}://{user}:{secret}@example.com/acme/shop.git")


@given(st.text())
def test_any_text_has_a_name_or_none(url: str) -> None:
    """A name has one name itself, seen as a URL."""
    name = normalised(url)
    assert name == "" or normalised(f"https://{name.replace('%', '%25')}") == name


# What git says of a folder


def test_a_repository_is_named_by_its_origin(repo: Path) -> None:
    """Seen from any folder in it, and through a link to one."""
    commit(repo, "one")
    git(repo, "remote", "add", "another", "https://example.com/other/shop")
    git(repo, "remote", "add", "origin", "https://ada:secret@Example.com:443/acme/shop.git?x=1")
    (repo / "src" / "deep").mkdir(parents=True)
    link = repo.parent / "link"
    link.symlink_to(repo / "src")
    for folder in (repo, repo / "src" / "deep", link, repo / ".git"):
        assert identity(str(folder)) == SHOP


def test_without_an_origin_the_first_remote_by_name_counts(repo: Path) -> None:
    """The order in which they were added says nothing; one on this machine isn't one."""
    git(repo, "remote", "add", "up-stream", "https://example.com/zzz/shop")
    git(repo, "remote", "add", "fork", "git@example.com:acme/shop.git")
    git(repo, "remote", "add", "origin", "/srv/git/shop.git")
    assert identity(str(repo)) == SHOP


def test_a_remote_goes_by_its_first_url(repo: Path) -> None:
    """A push URL and further ones are where copies go."""
    git(repo, "remote", "add", "origin", "git@example.com:acme/shop")
    git(repo, "remote", "set-url", "--add", "origin", "git@example.com:acme/copy")
    git(repo, "remote", "set-url", "--push", "origin", "git@example.com:acme/push")
    assert identity(str(repo)) == SHOP


def test_a_short_form_is_what_it_stands_for(repo: Path, tmp_path: Path) -> None:
    """A mirror that a host is fetched from isn't: it is this machine's affair."""
    git(repo, "config", "--global", "url.https://example.com/.insteadOf", "ex:")
    git(repo, "config", "--global", "url.https://mirror.test/.insteadOf", "https://example.com/")
    git(repo, "remote", "add", "origin", "ex:acme/shop.git")
    assert identity(str(repo)) == SHOP
    other = tmp_path / "other"
    git(tmp_path, "clone", "--quiet", str(repo), str(other))
    git(other, "remote", "set-url", "origin", "https://example.com/acme/shop")
    assert identity(str(other)) == SHOP


def test_without_a_remote_it_is_the_oldest_first_commit(repo: Path, tmp_path: Path) -> None:
    """The same in a copy, in a work tree of another history, and after a rename."""
    assert identity(str(repo)) == ""
    old = commit(repo, "one", at=1_500_000_000)
    commit(repo, "two", at=1_400_000_000)  # a clock that was wrong: it has a parent
    copy = tmp_path / "copy"
    git(tmp_path, "clone", "--quiet", str(repo), str(copy))
    git(repo, "checkout", "--quiet", "--orphan", "pages")
    commit(repo, "pages", at=1_600_000_000)
    git(repo, "worktree", "add", "--quiet", "../tree", "main")
    renamed = repo.rename(tmp_path / "renamed")
    git(renamed, "worktree", "repair", str(tmp_path / "tree"))
    for folder in (copy, renamed, tmp_path / "tree"):
        assert identity(str(folder)) == old


def test_what_was_replaced_is_still_the_first_commit(repo: Path) -> None:
    """Replacements stand in this copy alone."""
    first = commit(repo, "one")
    second = commit(repo, "two")
    git(repo, "replace", "--graft", second)
    assert identity(str(repo)) == first


def test_a_shallow_clone_has_no_first_commit(repo: Path, tmp_path: Path) -> None:
    """What looks like one there is not."""
    commit(repo, "one")
    commit(repo, "two")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth=1", repo.as_uri(), str(shallow))
    assert identity(str(shallow)) == ""
    git(shallow, "remote", "set-url", "origin", "git@example.com:acme/shop")
    beside = tmp_path / "beside"
    git(shallow, "worktree", "add", "--quiet", str(beside))
    assert identity(str(beside)) == SHOP


def test_work_trees_submodules_and_bare_repositories(repo: Path, tmp_path: Path) -> None:
    """Work trees are their repository; a submodule is one of its own."""
    commit(repo, "one")
    git(repo, "remote", "add", "origin", "git@example.com:acme/shop")
    tree = tmp_path / "tree"
    git(repo, "worktree", "add", "--quiet", str(tree))
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(repo), str(bare))
    allowed = ("-c", "protocol.file.allow=always")
    git(repo, *allowed, "submodule", "--quiet", "add", str(bare), "part")
    git(repo / "part", "remote", "set-url", "origin", "git@example.com:acme/part")
    assert identity(str(tree)) == SHOP
    assert work_tree(str(tree)) == str(tree)
    assert identity(str(repo / "part")) == "example.com/acme/part"
    assert work_tree(str(repo / "part")) == str(repo / "part")
    assert identity(str(bare)) == git(repo, "rev-list", "--max-parents=0", "HEAD")
    git(bare, "remote", "set-url", "origin", "git@example.com:acme/bare")
    again = tmp_path / "again.git"
    bare.rename(again)
    assert identity(str(again)) == "example.com/acme/bare"


@pytest.mark.parametrize("folder", ["", "shop", "/", "/no/such/folder", "/a\0b", "/\ud800"])
def test_no_folder_has_no_repository(folder: str) -> None:
    """A name is not a folder; one that is gone is in no repository."""
    assert identity(folder) == ""
    assert work_tree(folder) == ""


def test_a_folder_outside_any_repository(tmp_path: Path) -> None:
    """The user's own settings name no repository, whatever stands in them."""
    git(tmp_path, "config", "--global", "remote.origin.url", "git@example.com:acme/dotfiles")
    assert identity(str(tmp_path)) == ""
    (tmp_path / ".git").touch()  # as a broken one
    (tmp_path / "sub").mkdir()
    assert identity(str(tmp_path / "sub")) == ""
    assert work_tree(str(tmp_path / "sub")) == str(tmp_path.resolve())


def test_a_hook_speaks_of_its_own_repository(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What git tells the programs it starts is about another folder."""
    git(repo, "remote", "add", "origin", "git@example.com:acme/shop")
    other = tmp_path / "other"
    git(tmp_path, "init", "--quiet", str(other))
    git(other, "remote", "add", "origin", "git@example.com:acme/other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "remote.origin.url")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "git@example.com:acme/wrong")
    assert identity(str(repo)) == SHOP


def test_settings_in_an_included_file_count(repo: Path) -> None:
    """As they do for git."""
    (repo / "shared").write_text('[remote "origin"]\n\turl = git@example.com:acme/shop\n', "utf-8")
    git(repo, "config", "include.path", "../shared")
    assert identity(str(repo)) == SHOP


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_that_git_distrusts_is_not_named(repo: Path) -> None:
    """It belongs to somebody else; git refuses to read its settings, and we don't go round it."""
    git(repo, "remote", "add", "origin", "git@example.com:acme/shop")
    os.chown(repo, 65534, 65534)
    os.chown(repo / ".git", 65534, 65534)
    assert identity(str(repo)) == ""


def test_without_git_there_is_no_name(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work tree is known all the same."""
    git(repo, "remote", "add", "origin", "git@example.com:acme/shop")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert identity(str(repo)) == ""
    assert work_tree(str(repo)) == str(repo)


STUBBORN = """#!/bin/sh
echo "$@" >> "{log}"
trap '' TERM
exec sleep 60
"""


def test_git_has_a_second_and_is_asked_once(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that hangs is stopped, and what it would have said isn't replaced by something else."""
    commit(repo, "one")
    log = tmp_path / "log"
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(STUBBORN.format(log=log), encoding="utf-8")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(repository, "LIMIT_S", 0.2)
    assert identity(str(repo)) == ""
    assert identity(str(repo)) == ""
    (asked,) = log.read_text(encoding="utf-8").splitlines()
    assert "config --local" in asked


def test_a_repository_is_read_once(repo: Path) -> None:
    """A remote that is added later counts from the next process on."""
    git(repo, "remote", "add", "origin", "git@example.com:acme/shop")
    assert identity(str(repo)) == SHOP
    git(repo, "remote", "set-url", "origin", "git@example.com:acme/other")
    assert identity(str(repo)) == SHOP


def test_nothing_is_run_that_a_repository_asks_for(repo: Path, tmp_path: Path) -> None:
    """Its settings may name programs; reading them must not start one."""
    trap = tmp_path / "trap"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{trap}'\n", encoding="utf-8")
    program.chmod(0o700)
    commit(repo, "one")
    for setting in (
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.askPass",
        "core.editor",
    ):
        git(repo, "config", setting, str(program))
    git(repo, "config", "pager.rev-list", str(program))
    git(repo, "config", "pager.config", str(program))
    git(repo, "config", "remote.origin.url", f"ext::{program}")
    git(repo, "config", "remote.other.url", f"file://{tmp_path}/no")
    trap.unlink(missing_ok=True)
    assert identity(str(repo)) == git(repo, "rev-list", "--max-parents=0", "HEAD")
    assert not trap.exists()
