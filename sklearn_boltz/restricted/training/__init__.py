"""From one mini-batch to the next: rows, steps, monitors, Frank-Wolfe."""
