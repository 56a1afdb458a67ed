"""The state machine: its law, its parameters, its file, and the closed loop with an engine."""
