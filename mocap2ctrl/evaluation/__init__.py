"""What a controller is worth: joint error, falls, torques; nothing here steers a fit."""
