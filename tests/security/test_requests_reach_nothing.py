"""What a request says is never a path that is opened, a URL that is called, or code that is run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_no_request_has_a_file_opened_a_url_called_or_code_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.security.audited_requests", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["seen"] == []
    opened, called = told["noticed"]
    assert opened.startswith("open ")
    assert called == "somebody has called"
    assert told["answers"] == []
    assert sum(told["statuses"].values()) > 1000
    assert told["statuses"]["400"] > told["statuses"].get("200", 0)
