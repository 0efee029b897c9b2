from decimal import ROUND_HALF_UP, Decimal, getcontext
from fractions import Fraction

print(0.1 + 0.2, Decimal("0.1") + Decimal("0.2"))
price = Decimal("19.99") * Decimal("1.21")
print(price.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP))
getcontext().prec = 50
print(Decimal(2).sqrt())
print(Fraction(1, 3) + Fraction(1, 6), 2**100)
