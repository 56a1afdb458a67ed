"""What a user looks at: rendered bodies, overlay video, plots and the HTML report. Software rendering only."""
