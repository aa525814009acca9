"""`python -m scheduler_app.cli`, where the console script is not on PATH."""

from scheduler_app.cli import main

if __name__ == "__main__":
    main(prog_name="scheduler")
