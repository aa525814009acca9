"""`python -m tests.bench NAME`: each prints a table and, as its last line, one JSON object."""

import importlib
import sys

NAMES = ("burst", "spread", "tick", "expand", "recurrence")


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in NAMES:
        print(
            f"usage: python -m tests.bench {{{','.join(NAMES)}}} [options]; each knows --help",
            file=sys.stderr,
        )
        return 2
    module = importlib.import_module(f"tests.bench.{argv[0]}")
    result: int = module.main(argv[1:])
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
