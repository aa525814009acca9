"""Names of resources, which stand in paths."""

from scheduler_app.domain.errors import InvalidField


def check_new(name: str) -> None:
    """Raises InvalidField unless a new resource's name begins and ends with a letter or digit.

    `..` in a path leads elsewhere, and `-x` on a command line is an option. Resources that have such a name
    from an older release keep it.
    """
    if not (name[:1].isalnum() and name[-1:].isalnum()):
        raise InvalidField(
            "name", f"the path's must begin and end with a letter or digit, not as {name[:64]!r}"
        )
