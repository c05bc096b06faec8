"""The layout language: functions from coordinates to addresses, their algebra and evaluation."""
