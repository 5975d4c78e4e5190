"""Models that can be installed: what they are, and where their files lie. Nothing here fetches."""
