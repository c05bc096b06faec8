"""One module for each command: what it takes, and its help. None imports anything large."""
