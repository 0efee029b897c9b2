import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import train_test_split

rng = np.random.default_rng(42)
X = rng.uniform(0, 10, size=(200, 2))
y = 3.0 * X[:, 0] - 2.0 * X[:, 1] + 5.0 + rng.normal(0, 0.1, 200)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
model = LinearRegression().fit(X_train, y_train)
pred = model.predict(X_test)
print("Coefficients:", [round(float(c), 1) for c in model.coef_])
print("Intercept:", round(float(model.intercept_), 1))
print("R^2 above 0.99:", r2_score(y_test, pred) > 0.99)
print("MSE below 0.1:", mean_squared_error(y_test, pred) < 0.1)
