"""Models and hyper-parameters chosen privately: by search, by errors on other rows, with a holdout that lasts."""
