"""CALLBACK_CA_BUNDLE is a file of certificates, or is left out."""

from pathlib import Path

import certifi
import pytest

from scheduler_app.actions.http.kind import check_ca_bundle
from scheduler_app.config import InvalidSetting


def test_what_is_no_file_of_certificates_is_refused(tmp_path: Path) -> None:
    missing, wrong = tmp_path / "missing.pem", tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    for bundle in (missing, wrong, tmp_path):
        with pytest.raises(
            InvalidSetting, match=f"CALLBACK_CA_BUNDLE {bundle} cannot be read as certificates"
        ):
            check_ca_bundle(str(bundle))


def test_certificates_and_none_at_all_are_taken() -> None:
    check_ca_bundle(certifi.where())
    check_ca_bundle("")
