import pandas as pd

df = pd.read_csv("sales.csv", parse_dates=["date"])
df["revenue"] = df["units"] * df["price"]
pivot = pd.pivot_table(
    df, values="revenue", index="region", columns="product", aggfunc="sum", fill_value=0
)
print(pivot.to_string())
pivot.to_csv("pivot.csv")
print("Total revenue:", df["revenue"].sum())
