/** Removes folders that others may write to. */
import * as fs from 'node:fs/promises';
import { codeOf, unlessMissing } from '../../platform/files.ts';

/** Attempts to empty a folder that is being written to. */
const TRIES = 5;

/** Errors for a new name that is taken. */
const TAKEN: ReadonlySet<string> = new Set(['ENOTEMPTY', 'EEXIST']);

/**
 * Removes the file or folder at `path`, in a folder of Cloudlet's, with its contents; no error if missing.
 * Folders in it may belong to others, at any depth. Each is first moved beside `path`, as `<path>.<number>`,
 * where the owner of its former parent has no access: nobody can replace it by a link, and no path grows. A
 * crash leaves names that begin with `path`. Several callers may remove the same tree, or its leftovers after
 * a crash, at the same time.
 */
export async function removeTree(path: string): Promise<void> {
  const left = [path];
  let moved = 0;
  const moveOut = async (folder: Buffer) => {
    for (;;) {
      const to = `${path}.${moved++}`;
      try {
        await fs.rename(folder, to);
        left.push(to);
        return;
      } catch (error) {
        // Left by a crash, or by another removal.
        if (!TAKEN.has(codeOf(error) ?? '')) throw error;
      }
    }
  };
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const found = await fs.lstat(next).catch(unlessMissing);
    if (found?.isDirectory()) await removeFolder(next, moveOut).catch(unlessMissing);
    else if (found !== undefined) await fs.unlink(next).catch(unlessMissing);
  }
}

async function removeFolder(folder: string, moveOut: (inside: Buffer) => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    // Bytes, because a name need not be text.
    for await (const { name } of await fs.opendir(folder, { encoding: 'buffer' as BufferEncoding })) {
      const inside = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name)]);
      await remove(inside).catch(unlessMissing);
    }
    try {
      return await fs.rmdir(folder);
    } catch (error) {
      if (codeOf(error) !== 'ENOTEMPTY' || tries === TRIES) throw error;
    }
  }

  async function remove(inside: Buffer): Promise<void> {
    try {
      await fs.unlink(inside);
    } catch (error) {
      // Error codes of folders; the second is used by some file systems.
      if (codeOf(error) !== 'EISDIR' && codeOf(error) !== 'EPERM') throw error;
      await moveOut(inside);
    }
  }
}
