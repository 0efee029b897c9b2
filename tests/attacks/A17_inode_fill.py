# Makes empty files until refused (300,000 at most).
n = 0
t = time.time()
os.makedirs("ino", exist_ok=True)
try:
    while n < 300000 and time.time() - t < 15:
        os.close(os.open(f"ino/{n}", os.O_CREAT | os.O_WRONLY))
        n += 1
    if n >= 300000:
        bad("no inode limit", n)
except OSError as e:
    print("stopped at", n, e.strerror)
verdict()
