# Processes that replace themselves faster than a walk over process ids could kill them.
guard()
end = time.time() + 20
for i in range(8):
    if os.fork() == 0:
        while time.time() < end:
            if os.fork():
                os._exit(0)
        os._exit(0)
while True:
    time.sleep(1)
