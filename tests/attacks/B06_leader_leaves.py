"""Attacks warden/warden_end.cc: that the end of the first thread is the end of the program. The
first thread ends alone, another one works on, and its exit status is the one that counts."""

import threading

guard()


def rest():
    time.sleep(0.5)
    print("still here", flush=True)
    os._exit(5)


threading.Thread(target=rest).start()
time.sleep(0.1)
sc(60, 7)
