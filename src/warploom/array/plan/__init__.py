"""An array expression as loops, buffers and writes."""
