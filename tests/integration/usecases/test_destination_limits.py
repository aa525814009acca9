"""Limits where the broker cannot count, and no Redis does so for it."""

import dataclasses
from datetime import UTC, datetime
from typing import Any

import pytest

from scheduler_app.broker.backends import backend_of
from scheduler_app.config import InvalidSetting, Settings
from scheduler_app.config.settings import refuse_impossible
from scheduler_app.domain.destination_draft import DestinationDraft
from scheduler_app.domain.errors import InvalidField
from scheduler_app.store import Store
from scheduler_app.usecases.conditions import Conditions
from scheduler_app.usecases.destinations import DestinationService
