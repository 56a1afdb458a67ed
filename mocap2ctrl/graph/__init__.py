"""Control graphs of Liu, van de Panne and Yin 2016: short fragments of control, and which may follow which."""
