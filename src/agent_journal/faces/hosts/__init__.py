"""Installing the journal in agent hosts: `installing` does it, the other modules are its parts."""
