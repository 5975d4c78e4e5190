"""A private, append-only, searchable journal for people who work with coding agents."""
