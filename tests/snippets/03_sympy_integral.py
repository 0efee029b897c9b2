from sympy import Integral, cos, exp, integrate, oo, pi, simplify, sin, symbols

x = symbols("x")
print(Integral(exp(-x**2), (x, -oo, oo)), "=", integrate(exp(-x**2), (x, -oo, oo)))
print(integrate(x**2 * sin(x), x))
area = integrate(sin(x) ** 2, (x, 0, pi))
print(area, float(area))
print(simplify(sin(x) ** 2 + cos(x) ** 2))
