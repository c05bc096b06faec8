"""What every engine shares: budgets and outcomes."""
