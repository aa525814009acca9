"""The commands of `scheduler`: a file for each, named in the table of `scheduler_app.cli`."""
