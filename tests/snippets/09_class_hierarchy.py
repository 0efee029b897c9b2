from abc import ABC, abstractmethod
from dataclasses import dataclass
import math


class Shape(ABC):
    @abstractmethod
    def area(self) -> float: ...

    def __repr__(self):
        return f"{type(self).__name__}(area={self.area():.2f})"


@dataclass(repr=False)
class Circle(Shape):
    radius: float

    def area(self):
        return math.pi * self.radius**2


@dataclass(repr=False)
class Rectangle(Shape):
    width: float
    height: float

    def area(self):
        return self.width * self.height


class Square(Rectangle):
    def __init__(self, side):
        super().__init__(side, side)


for shape in sorted([Circle(1), Rectangle(2, 3), Square(1.5)], key=lambda s: s.area()):
    print(shape, [c.__name__ for c in type(shape).__mro__[:-1]])
try:
    Shape()
except TypeError as e:
    print("TypeError:", "abstract" in str(e))
