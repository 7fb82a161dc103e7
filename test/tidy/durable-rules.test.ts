import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkDurableFiles } from './durable-rules.ts';
import { locations, sample } from './sample.ts';

test('files that are written by hand are found, in the server alone, and exceptions that do not', () => {
  const files = sample({
    'server/a.ts': "import {\n  rm,\n  writeFile,\n} from 'node:fs/promises';",
    'server/b.ts': "import * as fs from 'node:fs';\nfs.writeFileSync(path, text);",
    'server/c.ts': 'writeDurableFile(path, text, 0o600);\nawait target.writeFile(x);',
    'server/b.test.ts': 'fs.writeFileSync(path, text);',
    'scripts/d.ts': 'fs.writeFileSync(path, text);',
    'server/drivers/qemu/probe.ts': 'fs.writeFileSync(path, text);',
    'server/drivers/qemu/images/disk.ts': 'nothing();',
  });
  const found = locations(checkDurableFiles(files));
  assert.deepEqual(
    found.filter((location) => /\/(?:[a-d]|probe|disk)\./.test(location)),
    ['server/a.ts:1', 'server/b.ts:2', 'server/drivers/qemu/images/disk.ts:1'],
  );
});
