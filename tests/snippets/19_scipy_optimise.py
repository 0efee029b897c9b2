import numpy as np
from scipy.optimize import curve_fit, minimize


def rosenbrock(p):
    return (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2


result = minimize(rosenbrock, x0=[-1.2, 1.0], method="BFGS")
print(result.success, np.round(result.x, 3).tolist())
x = np.linspace(0, 4, 50)
y = 2.5 * np.exp(-1.3 * x) + 0.5
params, _ = curve_fit(lambda x, a, b, c: a * np.exp(-b * x) + c, x, y, p0=[1, 1, 1])
print([round(float(p), 3) for p in params])
