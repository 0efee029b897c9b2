# The i386 and x32 entries of the kernel are shut: a filter of x86-64 numbers alone would miss
# them.
import mmap


def int80():
    m = mmap.mmap(-1, 4096, prot=7)
    m.write(b"S\xb8\x14\x00\x00\x00\xcd\x80[\xc3")
    r = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()
    return 42 if r == os.getpid() else 43


c = forked(int80)
if c == 42:
    bad("32-bit getpid worked: i386 ABI is open")


def x32():
    return 42 if sc(1073741824 | 39)[0] == os.getpid() else 43


c2 = forked(x32)
if c2 == 42:
    bad("x32 ABI is open")
print("int80 ->", c, "x32 ->", c2)
verdict()
