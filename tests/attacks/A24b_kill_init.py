# Signals to process 1.
guard()
os.kill(1, 9)
os.kill(1, 19)
os.kill(1, 11)
time.sleep(60)
