-- Copies of a machine's disk that its owner made, beside the disk.

CREATE SEQUENCE vm_snapshots_id_seq INCREMENT 64;
CREATE TABLE vm_snapshots (
  id BIGINT PRIMARY KEY DEFAULT nextval('vm_snapshots_id_seq'),
  snapshot_id TEXT COLLATE "C" NOT NULL UNIQUE,
  vm_id TEXT COLLATE "C" NOT NULL REFERENCES vms(vm_id) ON DELETE CASCADE,
  name TEXT COLLATE "C" NOT NULL,
  size_bytes BIGINT NOT NULL,             -- on the host; charged with the disk, each as whole GB
  created_at BIGINT NOT NULL
);
CREATE INDEX vm_snapshots_vm ON vm_snapshots(vm_id, id);
