"""IANA time zones, as tables that say when an offset begins and ends."""
