from openpyxl import Workbook, load_workbook
from openpyxl.styles import Font

wb = Workbook()
ws = wb.active
ws.title = "Budget"
ws.append(["Item", "Cost"])
for row in [("Rent", 1200), ("Food", 450.5), ("Travel", 99)]:
    ws.append(row)
ws["A1"].font = Font(bold=True)
ws["B5"] = "=SUM(B2:B4)"
wb.save("budget.xlsx")

again = load_workbook("budget.xlsx")["Budget"]
for row in again.iter_rows(values_only=True):
    print(row)
print(again["A1"].font.bold, again.dimensions)
