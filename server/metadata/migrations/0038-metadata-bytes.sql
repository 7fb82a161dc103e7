-- What is stored of an object besides its bytes counts as stored, in quotas and in charges: its name, type,
-- metadata, headers, tags and ACL, of each version, delete marker and open upload.

ALTER TABLE versions ADD COLUMN metadata_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE uploads ADD COLUMN metadata_bytes INTEGER NOT NULL DEFAULT 0;  -- counted while it is open
ALTER TABLE buckets ADD COLUMN metadata_bytes INTEGER NOT NULL DEFAULT 0;  -- of all versions and markers

UPDATE versions SET metadata_bytes = (SELECT length(CAST(o.name AS BLOB)) FROM objects o WHERE o.id = versions.object)
    + length(CAST(versions.mime_type AS BLOB)) + coalesce(length(CAST(versions.metadata AS BLOB)), 0) + coalesce(length(CAST(versions.headers AS BLOB)), 0)
    + coalesce(length(CAST(versions.tags AS BLOB)), 0) + coalesce(length(CAST(versions.acl AS BLOB)), 0);
UPDATE uploads SET metadata_bytes = length(CAST(name AS BLOB))
    + length(CAST(mime_type AS BLOB)) + coalesce(length(CAST(metadata AS BLOB)), 0) + coalesce(length(CAST(headers AS BLOB)), 0)
    + coalesce(length(CAST(tags AS BLOB)), 0) + coalesce(length(CAST(acl AS BLOB)), 0) WHERE state = 0;
UPDATE buckets SET metadata_bytes = coalesce((SELECT sum(v.metadata_bytes) FROM objects o
  JOIN versions v ON v.object = o.id WHERE o.bucket_id = buckets.id), 0);
UPDATE accounts SET storage_bytes = storage_bytes
  + coalesce((SELECT sum(b.metadata_bytes) FROM buckets b WHERE b.account_id = accounts.id), 0)
  + coalesce((SELECT sum(u.metadata_bytes) FROM uploads u WHERE u.account_id = accounts.id AND u.state = 0), 0);

-- Charged from the last stored moment of the steady clock on, not for the time before.
UPDATE usage_lines SET
  settled_to = CASE WHEN usage_lines.level = 0 AND usage_lines.pending = 0
    THEN max(usage_lines.level_since, c.ticks) ELSE usage_lines.settled_to END,
  pending = usage_lines.pending + usage_lines.level * (max(usage_lines.level_since, c.ticks) - usage_lines.level_since),
  level_since = max(usage_lines.level_since, c.ticks),
  level = usage_lines.level + c.bytes
FROM (
  SELECT CAST(b.id AS TEXT) AS bucket, coalesce((SELECT steady_ms / 1000 FROM steady_clock), 0) AS ticks,
    b.metadata_bytes + coalesce((SELECT sum(u.metadata_bytes) FROM uploads u
      WHERE u.bucket_id = b.id AND u.state = 0), 0) AS bytes
  FROM buckets b
) AS c
WHERE usage_lines.meter = 'storage' AND usage_lines.resource_id = c.bucket AND usage_lines.is_closed = 0;
