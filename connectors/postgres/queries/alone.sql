SELECT NOT EXISTS (SELECT FROM pipelines WHERE pipeline <> $1)
