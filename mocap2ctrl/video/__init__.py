"""From a video to silhouettes: cameras, decoding, background models, masks."""
