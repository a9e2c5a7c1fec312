"""Prometheus' own parser reads every expression of every dashboard."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from monitoring.dashboards.expressions import expressions

pytestmark = pytest.mark.sandbox
CHECK_WITHIN_S = 60
