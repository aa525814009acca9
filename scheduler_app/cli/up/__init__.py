"""`scheduler up`: what it checks, which services it starts, and the supervisor that keeps them running."""
