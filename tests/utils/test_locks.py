"""A folder is one process's at a time."""

import subprocess
import sys

import pytest

from cloakgp.utils.locks import locked_folder


def test_a_folder_is_locked_once_and_free_again(tmp_path):
    with locked_folder(tmp_path / "own"):
        with pytest.raises(BlockingIOError), locked_folder(tmp_path / "own"):
            pass
        with locked_folder(tmp_path / "other"):
            pass
    with locked_folder(tmp_path / "own"):
        pass


def test_a_process_that_died_leaves_it_free(tmp_path):
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom cloakgp.utils.locks import locked_folder\n"
        "with locked_folder(Path(sys.argv[1])):\n    os._exit(1)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path], check=False)
    assert done.returncode == 1
    with locked_folder(tmp_path):
        pass
