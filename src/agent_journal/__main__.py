"""Lets ``python -m agent_journal`` be the command line."""

import sys

from agent_journal.faces.cli import main

sys.exit(main())
