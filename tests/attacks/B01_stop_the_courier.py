"""Attacks guest/courier_out_unsafe.cc and plan.cc: the courier is the tenant's user, so whoever of
the program lives on could stop it before it kills, and with it the end of the run."""

guard()
open("/work/kept.txt", "w").write("kept")
parent = os.getpid()
for _ in range(4):
    if os.fork() == 0:
        while os.getppid() == parent:
            pass
        while True:
            try:
                os.kill(-1, signal.SIGSTOP)
            except OSError:
                pass
print("main done", flush=True)
os._exit(0)
