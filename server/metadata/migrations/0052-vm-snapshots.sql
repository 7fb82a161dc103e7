-- Copies of a machine's disk that its owner made, beside the disk.

CREATE TABLE vm_snapshots (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  snapshot_id TEXT NOT NULL UNIQUE,
  vm_id TEXT NOT NULL REFERENCES vms(vm_id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,            -- on the host; charged with the disk, each as whole GB
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX vm_snapshots_vm ON vm_snapshots(vm_id, id);
