"""The steps of the Dockerfile, run here: docker itself need not be at hand."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parent.parent
STEPS = [line.split(" ", 1) for line in (ROOT / "Dockerfile").read_text().splitlines() if re.match("[A-Z]+ ", line)]


def steps(name):
    return [words for step, words in STEPS if step == name]


def test_everything_that_is_copied_is_there_and_is_all_that_the_package_needs(tmp_path):
    ignored = (ROOT / ".dockerignore").read_text().split()
    for step in steps("COPY"):
        *sources, target = step.split()
        for source in sources:
            assert (ROOT / source).exists(), source
            assert source not in ignored
            if (ROOT / source).is_file():
                shutil.copy(ROOT / source, tmp_path)
            else:
                (tmp_path / target).symlink_to(ROOT / source)
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]
    for file in (project["readme"], *project["license-files"]):
        assert (tmp_path / file).exists()
    assert (tmp_path / "src" / "whytube" / "web" / "static" / "index.html").exists()


def test_what_is_installed_is_the_package_with_its_extra():
    (install, user) = steps("RUN")
    assert install.endswith("'.[web]'")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for needed in ("fastapi", "uvicorn", "python-multipart"):
        assert any(entry.startswith(needed) for entry in extras["web"])
    assert int(re.search(r"--uid (\d+)", user)[1]) > 0
    assert steps("USER") == ["whytube"], "the server is not root"


@pytest.mark.slow
def test_the_package_is_built_with_its_pages(tmp_path):
    """The step that installs, without what it fetches: a wheel of exactly what is copied."""
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("*.safetensors", "__pycache__"))
    words = ["-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path / "wheels", tmp_path]
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    (wheel,) = (tmp_path / "wheels").iterdir()
    listed = subprocess.run([sys.executable, "-m", "zipfile", "-l", wheel], capture_output=True, text=True, check=True)
    assert "whytube/web/static/index.html" in listed.stdout


def test_the_command_serves_and_its_health_is_checked(tmp_path):
    """CMD and HEALTHCHECK as they stand, with a free port and a folder of this test."""
    (command,) = (json.loads(words) for words in steps("CMD"))
    (check,) = (json.loads(words.partition("CMD ")[2]) for words in steps("HEALTHCHECK"))
    assert command[command.index("--port") + 1] == steps("EXPOSE")[0]
    assert command[command.index("--store") + 1] == steps("VOLUME")[0]
    here = {"/data": str(tmp_path), "8000": "0", "whytube": "whytube"}
    words = [sys.executable, "-m", *(here.get(word, word) for word in command)]
    environment = {**os.environ, "WHYTUBE_TOKEN": "chosen-by-the-operator"}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        line = process.stdout.readline()
        assert "#token=chosen-by-the-operator" in line
        port = re.search(r":(\d+)/#", line)[1]
        base = f"http://127.0.0.1:{port}"
        assert httpx.get(f"{base}/api/videos").status_code == 401
        shown = {"authorization": "Bearer chosen-by-the-operator"}
        assert httpx.get(f"{base}/api/videos", headers=shown).status_code == 200
        asked = [sys.executable, *(word.replace(":8000/", f":{port}/") for word in check[1:])]
        assert subprocess.run(asked).returncode == 0
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        process.stdout.close()
    assert subprocess.run(asked, capture_output=True).returncode != 0
