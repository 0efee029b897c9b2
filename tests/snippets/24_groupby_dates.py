import pandas as pd

days = pd.date_range("2024-01-01", periods=90, freq="D")
df = pd.DataFrame({"day": days, "visits": range(90)})
monthly = df.groupby(df["day"].dt.to_period("M"))["visits"].agg(["sum", "mean", "count"])
print(monthly)
weekly = df.set_index("day")["visits"].resample("W").sum()
print(weekly.head(2).to_dict())
print(df["visits"].rolling(7).mean().dropna().iloc[0])
