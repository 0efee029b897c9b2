# SIGKILL to its parent.
guard()
os.kill(os.getppid(), 9)
time.sleep(60)
