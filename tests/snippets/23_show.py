import matplotlib.pyplot as plt
import numpy as np

x = np.linspace(0, 2 * np.pi, 200)
plt.figure(figsize=(8, 5))
plt.plot(x, np.sin(x), label="sin(x)", color="red", linewidth=4)
plt.plot(x, np.cos(x), label="cos(x)")
plt.title("Trigonometric functions — 三角函数")
plt.legend()
plt.grid(True)
plt.show()
print("shown")
