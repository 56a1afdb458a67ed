"""Named cost terms. Video and motion capture differ only here, in one term."""
