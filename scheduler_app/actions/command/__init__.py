"""The kind `command`: programs that a worker runs, within the limits of its settings."""
