"""One torch thread per test worker; where there is no GPU the CUDA kernel runs in Triton's interpreter."""

import os
import signal

import pytest
import torch

from browsing import browser, opened, page_server  # noqa: F401 - fixtures
from subpath_kernels import KERNELS
from whytube.subpath import use_backend

torch.set_num_threads(1)
# A job in the background ignores Ctrl-C, and so would the processes that tests start, and stop.
signal.signal(signal.SIGINT, signal.default_int_handler)
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when the kernel's module is imported


@pytest.fixture(params=KERNELS)
def kernel(request):
    """Run the test on every kernel of the layer."""
    with use_backend(request.param):
        yield request.param


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """Give a real server with the demo model; tests that stop, fill or limit one start their own."""
    from web_server import serving

    folder = tmp_path_factory.mktemp("folder")
    with serving(tmp_path_factory.mktemp("store"), "--videos", folder) as running:
        running.folder = folder
        yield running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
