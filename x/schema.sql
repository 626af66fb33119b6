CREATE MACRO width_bucket (x, low, high, n) AS (CASE  WHEN ((x < low)) THEN (0) WHEN ((x >= high)) THEN ((n + 1)) ELSE (CAST(floor((((x - low) * n) / (high - low))) AS INTEGER) + 1) END);

