"""The commands of `scheduler`: a file for each group, named in the table of `scheduler_app.cli`."""
