SELECT '<a href="x;y">&amp; it''s</a>';
SELECT $html$<script>let a = 'b'; // c /* d */</script>$html$;
