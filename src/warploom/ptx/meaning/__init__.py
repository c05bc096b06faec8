"""What each elementwise PTX instruction computes, as machine values (`machine/value`)."""
