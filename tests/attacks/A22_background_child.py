# Ends at once and leaves a child in a session of its own that holds the output open.
import subprocess

subprocess.Popen(["/bin/sh", "-c", "sleep 600; echo late", "SBXMARK-22"], start_new_session=True)
print("main done", flush=True)
os._exit(0)
