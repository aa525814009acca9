"""Writes the golden files anew: `python -m tests.golden`."""

import os
import sys

import pytest

from tests.golden.golden_files import WRITES

os.environ[WRITES] = "1"
sys.exit(pytest.main(["-q", "-p", "no:randomly", "tests/golden", *sys.argv[1:]]))
