"""A plugin of pytest: UPTEMPO_EVERY=N runs a share of 1/N of the tests, and none that match a line of
UPTEMPO_LEFT_OUT (file::test[parameters], without folders)."""

import os

import pytest
from suites import share


@pytest.hookimpl(trylast=True)  # after pytest's own selection
def pytest_collection_modifyitems(config, items):
    patterns = os.environ.get("UPTEMPO_LEFT_OUT", "").splitlines()
    every = int(os.environ.get("UPTEMPO_EVERY", "1"))
    taken = share([item.nodeid for item in items], every, patterns)
    config.hook.pytest_deselected(items=[item for place, item in enumerate(items) if place not in taken])
    items[:] = [item for place, item in enumerate(items) if place in taken]
