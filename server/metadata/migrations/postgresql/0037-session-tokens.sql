-- A session's second secret, which only the page keeps. Sessions that were begun without one end: the cookie that
-- opened them may have been seen by programs behind other ports of the host.
DELETE FROM sessions;
ALTER TABLE sessions ADD COLUMN page_token_hash TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE UNIQUE INDEX sessions_page_token ON sessions(page_token_hash);
