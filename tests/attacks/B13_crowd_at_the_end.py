"""Attacks guest/become_unsafe.cc: the courier shares the sandbox's processor time with whatever the
program left. A crowd that begins to spin at the program's end holds the answer up."""

guard()
open("/work/kept.txt", "w").write("kept")
r, w = os.pipe()
for _ in range(100):
    if os.fork() == 0:
        os.close(w)
        os.read(r, 1)
        while True:
            pass
print("main done", flush=True)
os._exit(0)
