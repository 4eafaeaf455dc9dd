-- handle_distribution.sql: In how many guesses do all players of 한들 find the word?
-- Variables: none.
-- Example: ieumd psql -f SQL/queries/handle_distribution.sql
SELECT d.guesses, d.games, round(100.0 * d.games / nullif(sum(d.games) OVER (), 0), 1) AS percent,
       repeat('🟩', (20 * d.games / greatest(max(d.games) OVER (), 1))::integer) AS share
  FROM (SELECT sum(in_1) AS n1, sum(in_2) AS n2, sum(in_3) AS n3, sum(in_4) AS n4, sum(in_5) AS n5, sum(in_6) AS n6,
               sum(played - won) AS lost FROM handle_statistics) AS s
 CROSS JOIN LATERAL (VALUES ('1', s.n1), ('2', s.n2), ('3', s.n3), ('4', s.n4), ('5', s.n5), ('6', s.n6), ('lost', s.lost))
       AS d (guesses, games)
 ORDER BY d.guesses;
