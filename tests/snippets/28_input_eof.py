name = input("What is your name? ")
print(f"Hello, {name}!")
