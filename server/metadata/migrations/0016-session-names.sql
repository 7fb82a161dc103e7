-- What a session can be told by. Those that were begun earlier get ids that stand before all later ones.

ALTER TABLE sessions ADD COLUMN session_id TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN user_agent TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN address TEXT NOT NULL DEFAULT '';         -- where the login came from
UPDATE sessions SET session_id = 'ses-00' || substr(token_hash, 1, 24);
CREATE UNIQUE INDEX sessions_id ON sessions(session_id);
