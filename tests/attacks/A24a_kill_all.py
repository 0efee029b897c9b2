# SIGKILL to every process it may signal.
guard()
os.kill(-1, 9)
time.sleep(60)
