"""A group of commands whose help names each by a whole sentence."""

import click


class CommandGroup(click.Group):
    """click cuts the sentences of its list to a line each, which then end in "..."; here they are wrapped."""

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        commands = ((name, self.get_command(context, name)) for name in self.list_commands(context))
        rows = [
            (name, command.get_short_help_str(limit=_WHOLE))
            for name, command in commands
            if command is not None and not command.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


#: Characters, more than any sentence has.
_WHOLE = 1_000
