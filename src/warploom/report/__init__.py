"""Pictures and pages: a record comes in; an HTML page, SVG figures or a few lines go out."""
