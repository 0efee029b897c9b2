"""Attacks engine/outcome_decide.cc: a limit that was met and given back, followed by an end with
status 0, is no cause of anything."""

guard()
children = []
try:
    while True:
        child = os.fork()
        if child == 0:
            time.sleep(60)
        children.append(child)
except OSError:
    pass
for child in children:
    os.kill(child, 9)
    os.waitpid(child, 0)
try:
    with open("/work/big", "wb") as big:
        while True:
            big.write(bytes(1 << 20))
            big.flush()
except OSError:
    pass
print("main done", flush=True)
os._exit(0)
