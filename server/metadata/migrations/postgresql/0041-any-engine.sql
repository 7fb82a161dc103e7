-- The names of engines are the code's: the column has no list of them any more.

ALTER TABLE databases DROP CONSTRAINT databases_engine_check;
