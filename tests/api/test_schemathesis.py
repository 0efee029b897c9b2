"""The server against its own spec/openapi.yaml: what the spec allows is served, what it forbids is
refused, every answer looks as the spec says.

Against a daemon of the test's own, real sandboxes behind it. HUTCH_SCHEMA_EXAMPLES bounds the
examples of one operation.
"""

import os
import subprocess
import sys

import pytest

EXAMPLES = os.environ.get("HUTCH_SCHEMA_EXAMPLES", "20")
SLACK = float(os.environ.get("HUTCH_TEST_SLACK", "1"))

# Not `positive_data_acceptance`: paths and base64 have rules that a schema cannot tell, and those
# answers are checked one by one in tests/api/crusoe.
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance,negative_data_rejection,"
    "unsupported_method"
)

# 502 is how this door answers a file path that cannot be used, and 503 how it says "try again".
CONFIG = """
[checks.not_a_server_error]
expected-statuses = ["2xx", "4xx", "502", "503"]
"""


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_server_and_spec_agree(mode, tmp_path, daemon):
    url = daemon.internal.url
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG)
    command = [
        os.path.join(os.path.dirname(sys.executable), "schemathesis"),
        f"--config-file={config}",
        "run",
        f"{url}/openapi.yaml",
        f"--url={url}",
        f"--mode={mode}",
        f"--max-examples={EXAMPLES}",
        f"--checks={CHECKS}",
        "--phases=examples,coverage,fuzzing",
        "--request-timeout=70",
        "--max-failures=5",
        "--seed=1",
        "--generation-database=none",
        "--no-color",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=300 * SLACK
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
