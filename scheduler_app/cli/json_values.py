"""Options whose values are JSON or headers."""

import json
from typing import Any

import click

header_option = click.option("--header", multiple=True, metavar="NAME: VALUE", help="May be repeated.")


def json_value(text: str, option: str) -> Any:
    """What the text of an option says. Raises BadParameter, which does not repeat it: it may be secret."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"is not JSON: {error}", param_hint=option) from None


def name_and_value(text: str, option: str = "--header") -> tuple[str, str]:
    """The two parts of `NAME: VALUE`. Raises BadParameter."""
    name, colon, value = text.partition(":")
    if not colon:
        raise click.BadParameter(f"{text!r} is not NAME: VALUE", param_hint=option)
    return name.strip(), value.strip()
