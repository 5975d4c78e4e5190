"""Installing models: the only part of this package that opens a network connection."""
