# Detached grandchildren that ignore signals, and a main program that never ends.
for i in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.execv(
            "/bin/sh",
            [
                "/bin/sh",
                "-c",
                'trap "" HUP INT QUIT TERM; while :; do sleep 0.1; echo x >> beat; done',
                "SBXMARK-23",
            ],
        )
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    time.sleep(1)
