import matplotlib.pyplot as plt

categories = ["A", "B", "C", "D"]
values = [23, 45, 56, 78]
fig, ax = plt.subplots(figsize=(6, 4), dpi=100)
ax.bar(categories, values, color="#1f77b4")
ax.set_title("Sales by Category")
ax.set_ylabel("Units")
plt.tight_layout()
plt.savefig("chart.png")
print("Chart saved to chart.png")
