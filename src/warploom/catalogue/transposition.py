"""To come."""

from warploom.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = ()
