"""`scheduler apply`: `files` reads what is to be there, `planning` compares, `applying` does it."""
