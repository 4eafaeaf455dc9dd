CREATE TABLE "🟩;🟨" (단어 text, "⬛" int);
INSERT INTO "🟩;🟨" VALUES ('한글; 🟩', 1);
SELECT 단어 FROM "🟩;🟨";
