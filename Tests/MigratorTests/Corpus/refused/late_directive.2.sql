SELECT 1;
-- migrate: no-transaction
