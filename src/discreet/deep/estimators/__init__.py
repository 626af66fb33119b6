"""Networks with scikit-learn's interface, trained by the private trainer."""
