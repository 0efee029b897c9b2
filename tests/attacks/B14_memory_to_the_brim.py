"""Attacks warden/warden_make.cc: the courier lives within the sandbox's memory limit, and files and
System V memory outlive the program. A run that fills them and ends well keeps its results."""

guard()
with open("/work/kept.txt", "w") as kept:
    kept.write("kept")
with open("/work/result.bin", "wb") as result:
    result.write(b"y" * (4 << 20))
fill = """
import ctypes, os
C = ctypes.CDLL(None, use_errno=True)
C.shmat.restype = ctypes.c_void_p
place = C.shmat(C.shmget(0, 600 << 20, 0o1600), None, 0)
ctypes.memset(place, 1, 492 << 20)
os._exit(0)
"""
with open("/tmp/fill.py", "w") as program:
    program.write(fill)
# The last one alive is small, so that its end gives nothing back.
last = "python3 -I -S /tmp/fill.py; head -c 12500000 /dev/zero > /dev/shm/x; echo main done"
os.execv("/bin/sh", ["sh", "-c", last])
