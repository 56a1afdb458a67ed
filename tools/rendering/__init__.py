"""A small software renderer of footage of people: bodies, clothes, light, scenery, cameras and a phone's picture."""
