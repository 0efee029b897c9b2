from shop import Cart
from shop.tax import with_tax

cart = Cart()
cart.add("pen", 2.5, 4)
print(cart.total(), with_tax(cart.total()), Cart.__module__)
