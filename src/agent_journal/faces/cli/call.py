"""One call of the program: the settings and the journal it is about, and how it answers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from agent_journal.errors import JournalUnavailableError
from agent_journal.faces.cli.layout import Line
from agent_journal.faces.cli.output import print_json, print_lines, progress_bar, say_warning
from agent_journal.faces.cli.shared import given
from agent_journal.jsonline import Json

if TYPE_CHECKING:
    from agent_journal.config import Settings
    from agent_journal.journal import Journal


class Call:
    """One call of the program: what its shared options say, and how it answers."""

    def __init__(self, context: click.Context) -> None:
        self._given = given(context)

    @property
    def as_json(self) -> bool:
        """Whether a JSON object is wanted."""
        return bool(self._given.get("json"))

    def settings(
        self, *, lexical: bool = False, quiet: bool = False, writes: bool = False
    ) -> Settings:
        """Resolve the settings and set up the log; a file that can't be used is told on stderr.

        Args:
            lexical: use no model, whatever is configured.
            quiet: print nothing and log nothing.
            writes: refuse a file that can't be used, unless the folder is given anyway.

        Raises:
            ConfigError: a flag or an environment variable can't be used, or the file, as above.
        """
        from agent_journal.config import load_settings  # noqa: PLC0415 - not needed for --help

        settings = load_settings(
            os.environ,
            journal=self._given.get("journal"),
            config=self._given.get("config"),
            index=self._given.get("index"),
            model="none" if lexical else self._given.get("embedding_model"),
            secrets=self._given.get("secrets"),
        )
        if quiet:
            return settings
        from agent_journal.faces import logs  # noqa: PLC0415 - not needed for --help

        logs.set_up(settings)
        if settings.error and writes and not settings.folder_is_explicit:
            settings.error.add_note("mend it, or say where to write with --journal DIR")
            raise settings.error
        if settings.error:
            say_warning(f"{settings.error}; going on as if there were no configuration file")
        return settings

    @contextmanager
    def journal(
        self, settings: Settings, *, current: bool = False, warm: bool = False
    ) -> Iterator[Journal]:
        """Open the journal, and close it afterwards.

        Args:
            settings: where it is.
            current: look at every file first and bring the index in step, showing progress; a
                folder that can't be read is left for the answer to tell.
            warm: load the model meanwhile.
        """
        from agent_journal.assembly import open_journal  # noqa: PLC0415 - not needed for --help

        with open_journal(settings) as journal:
            if warm:
                journal.warm_up()
            if current:
                with progress_bar("Indexing") as progress, suppress(JournalUnavailableError):
                    journal.catch_up(thorough=True, progress=progress)
            yield journal

    def answer(self, shape: Json, lines: Iterable[Line]) -> None:
        """Print an answer in the form that was asked for; it is flushed when this returns."""
        if self.as_json:
            print_json(shape)
        else:
            print_lines(lines)
