import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitsOfHost } from './plans.ts';

const GIB = 2 ** 30;

test('limits follow from the size of the host, and a small one still serves its only user', () => {
  const of24 = limitsOfHost({ diskBytes: 100 * GIB + 5, memoryMb: 35_000, largestMb: 16_384, cores: 2 });
  assert.deepEqual(of24, {
    vms: 68,
    vcpus: 128,
    memory_mb: 17 * 1024,
    disk_gb: 3072,
    storage_bytes: 50 * GIB,
    buckets: 1000,
    databases: 50,
  });
  const tiny = limitsOfHost({ diskBytes: GIB, memoryMb: 1260, largestMb: 1024, cores: 1 });
  assert.deepEqual([tiny.vms, tiny.vcpus, tiny.memory_mb, tiny.storage_bytes], [25, 128, 1260, GIB]);
  const small = limitsOfHost({ diskBytes: 9 * GIB, memoryMb: 5000, largestMb: 4096, cores: 1 });
  assert.equal(small.memory_mb, 4096, 'what this host can start at all, its only user can start');
  const large = limitsOfHost({ diskBytes: 2 ** 43, memoryMb: 786_432, largestMb: 65_536, cores: 64 });
  assert.deepEqual([large.vms, large.vcpus, large.memory_mb, large.disk_gb], [1536, 1024, 393_216, 4096]);
});
