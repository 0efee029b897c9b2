import subprocess
import sys

result = subprocess.run(
    ["sort", "-n"], input="10\n9\n2\n", capture_output=True, text=True, check=True
)
print(result.stdout.split())
result = subprocess.run(
    [sys.executable, "-c", "import sys; print('to stderr', file=sys.stderr); sys.exit(4)"],
    capture_output=True,
    text=True,
)
print(result.returncode, repr(result.stderr))
print(subprocess.check_output("echo a b c | wc -w", shell=True, text=True).strip())
try:
    subprocess.run(["no-such-command"])
except FileNotFoundError as e:
    print(type(e).__name__, e.filename)
