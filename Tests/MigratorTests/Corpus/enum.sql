CREATE TYPE mood AS ENUM ('sad;', 'ok''');
ALTER TYPE mood ADD VALUE '--happy' AFTER 'sad;';
