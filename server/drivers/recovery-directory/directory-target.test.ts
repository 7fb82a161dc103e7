import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { testRecoveryTarget } from '../../testing/recovery-target.conformance.ts';
import { DirectoryTarget } from './directory-target.ts';

const root = mkdtempSync(join(tmpdir(), 'cloudlet-targets-'));
after(() => rmSync(root, { recursive: true }));
let count = 0;

testRecoveryTarget('DirectoryTarget', async () => {
  const location = join(root, String(++count));
  return { target: new DirectoryTarget(location), again: () => new DirectoryTarget(location) };
});
