import numpy as np

block = bytearray(100 * 1024 * 1024)
for i in range(0, len(block), 4096):
    block[i] = 1
array = np.ones(100 * 1024 * 1024 // 8)
print(sum(block[::4096]), int(array.sum()))
