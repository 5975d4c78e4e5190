"""Entries from elsewhere, and entries for elsewhere; one module for each format."""
