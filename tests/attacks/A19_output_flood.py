# 64 MiB into each stream.
b = (b"x" * 1023 + b"\n") * 64
for i in range(1024):
    os.write(1, b)
    os.write(2, b)
os._exit(4)
