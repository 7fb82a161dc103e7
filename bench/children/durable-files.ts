/** The plain way to keep a small object: a file of its own, fdatasync, and an fsync of the directory. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { childInput } from '../child.ts';

interface Input {
  readonly directory: string;
  readonly seconds: number;
  readonly writers: number;
  readonly bytes: number;
}

const { directory, seconds, writers, bytes } = childInput<Input>();
const content = randomBytes(bytes);
let written = 0;

async function writeOne(path: string, parent: FileHandle): Promise<void> {
  const file = await open(path, 'wx');
  await file.write(content);
  await file.datasync();
  await file.close();
  await parent.sync();
  written++;
}

mkdirSync(directory);
const parent = await open(directory, 'r');
const began = performance.now();
const end = began + seconds * 1000;
await Promise.all(
  Array.from({ length: writers }, async (_, writer) => {
    for (let index = 0; performance.now() < end; index++) {
      await writeOne(join(directory, `${writer}-${index}`), parent);
    }
  }),
);
const elapsed = (performance.now() - began) / 1000;
await parent.close();
rmSync(directory, { recursive: true });
console.log(JSON.stringify({ perSecond: written / elapsed }));
