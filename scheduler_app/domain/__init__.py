"""What the product is about, without any input or output: standard library and dateutil only."""
