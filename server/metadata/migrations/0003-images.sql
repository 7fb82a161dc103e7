-- Images that are taken in over time: their state, and what they were made of.

ALTER TABLE images RENAME TO images_before;
CREATE TABLE images (
  image_id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('importing','ready','failed')),
  reason_code TEXT,                     -- why it failed
  reason_message TEXT,
  size_bytes INTEGER NOT NULL,          -- 0 until it is ready
  virtual_bytes INTEGER NOT NULL,       -- of the disk that a guest sees; 0 until it is ready
  source TEXT NOT NULL,                 -- for people; holds no secret
  source_format TEXT CHECK (source_format IN ('raw','qcow2')), -- what the bytes were recognised as
  sha256 TEXT,                          -- of the source, hexadecimal; null until all of it came
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO images (image_id, name, state, size_bytes, virtual_bytes, source, created_at)
  SELECT image_id, name, 'ready', size_bytes, virtual_bytes, source, created_at FROM images_before;
DROP TABLE images_before;
CREATE INDEX vms_image ON vms(image_id) WHERE image_id <> 'tiny';
