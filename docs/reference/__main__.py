"""`python -m docs.reference` writes every generated file; the tables of `ways` need servers."""

from . import write

write()
