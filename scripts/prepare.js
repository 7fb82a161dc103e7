/**
 * Prepares the missing parts beside a running server, which starts it (server/drivers/preparation/) and ends
 * it by closing its standard input. Prints a line for people when a part is there or fails, and writes down
 * in build/preparing/ how far it is, for servers of this clone. Tries again, less and less often.
 *
 *   node scripts/prepare.js [has-postgresql]
 */
import { accessSync, constants, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { outsidePath } from './outside-programs.js';
import { mayComeLater, missingParts } from './parts.js';
import { withLock } from './set-up-lock.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = join(ROOT, 'build/preparing');
const FIRST_RETRY_MS = 30_000;
const LAST_RETRY_MS = 1_800_000;
const HAS_POSTGRESQL = process.argv.includes('has-postgresql');

/** For a reader at any moment: the file is complete. */
function note(part, progress) {
  const file = join(FOLDER, `${part.name}.json`);
  const text = JSON.stringify({ pid: process.pid, ...progress });
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

const forget = (part) => rmSync(join(FOLDER, `${part.name}.json`), { force: true });

/** Remains of a killed set-up. */
function sweep() {
  for (const folder of ['build/guest', 'build/programs'].map((path) => join(ROOT, path))) {
    mkdirSync(folder, { recursive: true });
    for (const name of readdirSync(folder))
      if (name.startsWith('work-')) rmSync(join(folder, name), { recursive: true, force: true });
  }
}

/** Resolves with whether another attempt makes sense. */
async function attempt(part) {
  const began = Date.now();
  try {
    note(part, { percent: 0, step: 'looking for packages' });
    // Calls of a server that has just become ready have priority.
    await new Promise((resolve) => setImmediate(resolve));
    const words = part.prepare({
      root: ROOT,
      outsidePath: outsidePath(),
      hasOwn: () => HAS_POSTGRESQL,
      onProgress: (percent, step) => note(part, { percent, step }),
    });
    console.log(`  ${part.title} is ready: ${words} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
    return false;
  } catch (error) {
    console.log(`  ${part.title} is not available: ${error.message}`);
    return mayComeLater(error);
  } finally {
    forget(part);
  }
}

async function main() {
  try {
    mkdirSync(FOLDER, { recursive: true });
    accessSync(FOLDER, constants.W_OK);
  } catch (error) {
    // Installed by another user, or read-only as under systemd.
    console.log(
      `  Parts of this host are missing, and ${FOLDER} cannot be written (${error.code}). Its owner`,
    );
    console.log(`  can prepare them: ${process.execPath} ${fileURLToPath(import.meta.url)}`);
    return;
  }
  const lost = new Set();
  let pauseMs = FIRST_RETRY_MS;
  for (;;) {
    const isLeft = await withLock(join(FOLDER, 'lock'), {
      onWait: () => {},
      work: async () => {
        sweep();
        const wanted = missingParts(ROOT).filter((part) => !lost.has(part.name));
        for (const part of wanted) note(part, { percent: null, step: 'waiting for its turn' });
        for (const part of wanted) if (!(await attempt(part))) lost.add(part.name);
        return missingParts(ROOT).some((part) => !lost.has(part.name));
      },
    });
    if (!isLeft) return;
    console.log(`  Trying again in ${pauseMs / 1000} s.`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    pauseMs = Math.min(2 * pauseMs, LAST_RETRY_MS);
  }
}

process.umask(0o022);
process.stdin.on('end', () => process.exit(0));
process.stdin.resume();
await main();
process.exit(0);
