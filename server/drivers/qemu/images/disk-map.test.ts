import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { findFilter } from '../../host-process/system-calls.ts';
import { createDisk } from './disk.ts';
import { descriptionOf, mapOf } from './disk-map.ts';

const { problem } = await findFilter();
const skip = problem === '' ? false : problem;
/** Reports, in JSON, whether it has a filter and may gain rights, and the file at descriptor 3. */
const TOOL = `#!/bin/sh
value() { sed -n "s/^$1:[^0-9]*//p" /proc/self/status; }
said='{"seccomp":'$(value Seccomp)',"noNewPrivs":'$(value NoNewPrivs)',"file":"'$(readlink /proc/$$/fd/3)'"}'
case $1 in
  map) echo "[$said]" ;;
  info) echo "$said" ;;
  create) echo "$said" >created ;;
esac
`;
const FILTERED = { seccomp: 2, noNewPrivs: 1 };

let folder: string;
let tool: string;
before(() => {
  folder = fs.mkdtempSync(join(tmpdir(), 'cloudlet-disk-map-'));
  tool = join(folder, 'qemu-img');
  fs.writeFileSync(tool, TOOL, { mode: 0o755 });
});
after(() => fs.rmSync(folder, { recursive: true, force: true }));

test('the holes of a disk are found under the filter, of the file that is open', { skip }, async () => {
  const fd = fs.openSync(tool, 'r');
  try {
    const parts = await mapOf(tool, { fd, format: 'qcow2', uid: null });
    assert.deepEqual(parts, [{ ...FILTERED, file: tool }]);
  } finally {
    fs.closeSync(fd);
  }
});

test('a disk is described, and a new one made, under the filter', { skip }, async () => {
  const { file: _, ...described } = {
    file: '',
    ...(await descriptionOf(tool, { folder, name: 'd', uid: null })),
  };
  assert.deepEqual(described, FILTERED);
  await createDisk(folder, { name: 'd', format: null, size: '1G', owner: null, qemuImg: tool });
  const { seccomp, noNewPrivs } = JSON.parse(fs.readFileSync(join(folder, 'created'), 'utf8'));
  assert.deepEqual({ seccomp, noNewPrivs }, FILTERED);
});
