"""Credentials in text: found by rules that are seldom wrong, and masked before it is written."""
