"""From a plan with sizes and a mapping to kernels."""
