"""Attacks warden/warden_end.cc: the deadline of a program whose first thread has ended, and which
ignores the signal that asks for its output; stopped, with a child that waits in vfork."""

import threading

guard()
signal.signal(64, signal.SIG_IGN)


def rest():
    print("before", flush=True)
    if sc(58)[0] == 0:  # vfork: the parent waits for a child that is stopped
        os.kill(os.getpid(), signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGSTOP)


threading.Thread(target=rest).start()
time.sleep(0.2)
sc(60, 0)
