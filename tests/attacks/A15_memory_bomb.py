# Touches memory until it is killed (6 GiB at most).
keep = []
for i in range(96):
    b = bytearray(64 << 20)
    b[::4096] = b"\x01" * (len(b) // 4096)
    keep.append(b)
    os.write(1, b".")
print("\nVERDICT BREACH: touched 6 GiB", flush=True)
