-- How the database takes words out of texts, for the postings and for questions alike.
--
-- This file is what is true today. The database gets it from the newest migrations/*_functions.sql,
-- a copy that never changes again: to change a function, change it here, copy the whole file beside
-- a new migration that loads it and writes all postings anew. A test compares the database and the
-- newest copy with this file.


-- A text without what PostgreSQL's parser would take for a part of its words.
--
-- It keeps addresses, paths and names with dots whole, and nobody asks for them whole; version
-- numbers stay. Where the database has no locale of its own it also takes punctuation outside ASCII
-- for letters: “word” would be found by “word” only.
CREATE OR REPLACE FUNCTION knowledge_plain(words text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN regexp_replace(
    regexp_replace(words, '[/\\_@:=&?#%~|\u00a0-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf'
        '\u2000-\u206f\u2190-\u2bff\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40'
        '\uff5b-\uff65]', ' ', 'g'),
    '(?<=[[:alpha:]])\.(?=[[:alpha:]])', ' ', 'g');


-- Every two neighbouring characters of the scripts that write words without a border between them
-- or with particles attached (Chinese, Japanese, Korean, Thai, Lao, Burmese and Khmer): the nearest
-- thing to a word there.
CREATE OR REPLACE FUNCTION knowledge_bigrams(words text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
    SELECT string_agg(substr(run[1], place, 2), ' ')
    FROM regexp_matches(words,
            '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff'
            '\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+', 'g') AS run,
        generate_series(1, greatest(length(run[1]) - 1, 1)) AS place
);


-- The words of a text, stemmed as a text search configuration does.
CREATE OR REPLACE FUNCTION knowledge_words(config text, words text) RETURNS tsvector
LANGUAGE sql STABLE PARALLEL SAFE
RETURN to_tsvector(config::regconfig, CASE config
    WHEN 'simple' THEN concat_ws(' ', knowledge_plain(words), knowledge_bigrams(words))
    ELSE knowledge_plain(words)
END);
