"""Attacks guest/courier_out_unsafe.cc: the same as B01 with the signal that needs no patience; two
couriers that die are an answer that is lost."""

guard()
open("/work/kept.txt", "w").write("kept")
parent = os.getpid()
if os.fork() == 0:
    while os.getppid() == parent:
        pass
    while True:
        try:
            os.kill(-1, signal.SIGKILL)
        except OSError:
            pass
print("main done", flush=True)
os._exit(0)
