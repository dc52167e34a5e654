"""What an estimator is to fit, and how: from its rows and settings to a task and a way."""
