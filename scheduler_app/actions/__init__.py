"""What an occurrence does: a folder for each kind."""
