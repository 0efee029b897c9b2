# Forks and starts threads until refused (3000 at most).
guard()
n = 0
t = time.time()
err = ""
try:
    while n < 3000 and time.time() - t < 8:
        if os.fork() == 0:
            time.sleep(3)
            os._exit(0)
        n += 1
except OSError as e:
    err = e.strerror
print("forked", n, err)
if n >= 1024:
    bad("no process limit: ", n)
import threading

ths = []
try:
    for i in range(3000):
        x = threading.Thread(target=time.sleep, args=(1,), daemon=True)
        x.start()
        ths.append(x)
except RuntimeError:
    pass
if len(ths) >= 1024:
    bad("threads do not count", len(ths))
verdict()
