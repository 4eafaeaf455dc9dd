SELECT 'a; b', 'it''s; fine', '', '''';
SELECT ''';''';
