"""`python -m docs.reference` writes every generated file."""

from . import write

write()
