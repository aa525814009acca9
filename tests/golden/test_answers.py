"""Every route's answers for the recorded run, and the requests that receivers got from it."""

import pytest

from tests.golden.conftest import Ran
from tests.golden.golden_files import compare

pytestmark = pytest.mark.long


def test_every_answer_is_as_recorded(ran: Ran, opened: Ran) -> None:
    compare("answers", ran.answers | opened.answers)


def test_every_callback_is_as_recorded(ran: Ran, opened: Ran) -> None:
    compare("callbacks", {"run.txt": ran.callbacks, "open.txt": opened.callbacks})
