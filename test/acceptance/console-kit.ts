/** What tests of the console share. */
import assert from 'node:assert/strict';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const { isConsoleCurrent } = (await import(join(ROOT, 'scripts/console-build.js'))) as {
  isConsoleCurrent: (root: string) => boolean;
};

/** Fails when build/console is not of the present sources: what is tested must be what is there. */
export function assertConsoleBuilt(): void {
  assert.ok(isConsoleCurrent(ROOT), 'build/console is out of date: run `node scripts/console-build.js`');
}
