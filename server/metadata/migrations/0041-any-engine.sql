-- The names of engines are the code's: the column has no list of them any more. It is put in the place of the old
-- one, because a table made anew would take its samples along (ON DELETE CASCADE).

ALTER TABLE databases ADD COLUMN engine_name TEXT NOT NULL DEFAULT '';
UPDATE databases SET engine_name = engine;
ALTER TABLE databases DROP COLUMN engine;
ALTER TABLE databases RENAME COLUMN engine_name TO engine;
