/**
 * Access to files, folders and unix sockets in a folder that belongs to a foreign process. The process is not
 * trusted: it can replace its own file by a link, a pipe or another user's file at any moment. So names are
 * only opened, created or removed here; an open file is used by its descriptor, never by its name again.
 */
import * as fs from 'node:fs';
import * as promises from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { codeOf, isCode, unlessMissing } from '../../platform/files.ts';

const LOG_TAIL_BYTES = 4096;

/**
 * Opens a plain file that belongs to the owner of its folder and has no other name. Throws for anything
 * else, and never waits. `access`: `O_RDONLY` and the like.
 */
export function openOwn(folder: string, name: string, access: number): number {
  const { O_NOFOLLOW, O_NONBLOCK } = fs.constants;
  const fd = fs.openSync(join(folder, name), access | O_NOFOLLOW | O_NONBLOCK);
  const found = fs.fstatSync(fd);
  if (found.isFile() && found.nlink === 1 && found.uid === fs.statSync(folder).uid) return fd;
  fs.closeSync(fd);
  throw new Error(`${name} is not a regular file, is linked elsewhere, or belongs to another user`);
}

/** The last bytes of a file. */
export function tailOf(fd: number, maxBytes: number): Buffer {
  const { size } = fs.fstatSync(fd);
  const bytes = Buffer.alloc(Math.min(size, maxBytes));
  return bytes.subarray(0, fs.readSync(fd, bytes, 0, bytes.length, size - bytes.length));
}

/** The last whole lines of a file, of at most so many bytes. */
export function lastLines(path: string, maxBytes: number): string {
  const fd = fs.openSync(path, 'r');
  try {
    // One extra byte shows whether a line was cut.
    const bytes = tailOf(fd, maxBytes + 1);
    const isWhole = bytes.length <= maxBytes;
    return bytes.subarray(isWhole ? 0 : bytes.indexOf('\n') + 1).toString();
  } finally {
    fs.closeSync(fd);
  }
}

/** Removes a file or a link; a missing one is no error. */
export function removeName(path: string): void {
  try {
    fs.unlinkSync(path);
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error;
  }
}

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
        await promises.rename(folder, to);
        left.push(to);
        return;
      } catch (error) {
        // Left by a crash, or by another removal.
        if (!TAKEN.has(codeOf(error) ?? '')) throw error;
      }
    }
  };
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const found = await promises.lstat(next).catch(unlessMissing);
    if (found?.isDirectory()) await removeFolder(next, moveOut).catch(unlessMissing);
    else if (found !== undefined) await promises.unlink(next).catch(unlessMissing);
  }
}

async function removeFolder(folder: string, moveOut: (inside: Buffer) => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    // Bytes, because a name need not be text.
    for await (const { name } of await promises.opendir(folder, { encoding: 'buffer' as BufferEncoding })) {
      const inside = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name)]);
      await remove(inside).catch(unlessMissing);
    }
    try {
      return await promises.rmdir(folder);
    } catch (error) {
      if (codeOf(error) !== 'ENOTEMPTY' || tries === TRIES) throw error;
    }
  }

  async function remove(inside: Buffer): Promise<void> {
    try {
      await promises.unlink(inside);
    } catch (error) {
      // Error codes of folders; the second is used by some file systems.
      if (codeOf(error) !== 'EISDIR' && codeOf(error) !== 'EPERM') throw error;
      await moveOut(inside);
    }
  }
}

function endOf(log: string): string {
  try {
    const fd = fs.openSync(log, 'r');
    try {
      return tailOf(fd, LOG_TAIL_BYTES).toString();
    } finally {
      fs.closeSync(fd);
    }
  } catch {
    return '';
  }
}

/** The last line of a log without paths; null if empty. */
export function lastLine(log: string): string | null {
  return withoutPaths(endOf(log).trim().split('\n').at(-1) ?? '');
}

/** Like lastLine(), but prefers the line with a database server's reason for ending. */
export function lastReason(log: string): string | null {
  const lines = endOf(log).trim().split('\n');
  return withoutPaths(lines.findLast((line) => REASON.test(line)) ?? lines.at(-1) ?? '');
}

/** The marks of PostgreSQL and MariaDB. */
const REASON = /\b(FATAL|PANIC):|\[ERROR\]/;

function withoutPaths(line: string): string | null {
  const plain = line.replace(/\S*\/\S*/g, '…').slice(0, 300);
  return plain === '' ? null : plain;
}

/** A Linux flag missing in Node: the descriptor refers to the path without opening it. */
const O_PATH = 0o10000000;

/**
 * A connection to the socket `name` in `folder`. Rejects when nobody listens there, and when it is a link or
 * was made by anyone but the owner of the folder: its process must not redirect us. The process can replace
 * the file at any moment, so the checked socket is held open and used for the connection.
 */
export async function connectIn(folder: string, name: string): Promise<Socket> {
  const { path, close } = holdSocket(folder, name);
  try {
    return await connected(path);
  } finally {
    close();
  }
}

/**
 * Same as above, for callers that connect themselves: a path that leads to that very socket until close(),
 * which may be called again. Throws.
 */
export function holdSocket(folder: string, name: string): { readonly path: string; close(): void } {
  const fd = fs.openSync(join(folder, name), O_PATH | fs.constants.O_NOFOLLOW);
  let isHeld = true;
  const close = () => {
    // The inode number may now belong to another file.
    if (isHeld) fs.closeSync(fd);
    isHeld = false;
  };
  const found = fs.fstatSync(fd);
  if (found.isSocket() && found.uid === fs.statSync(folder).uid)
    return { path: `/proc/self/fd/${fd}`, close };
  close();
  throw new Error(`${name} is not a socket`);
}

function connected(path: string): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect(path);
  socket.once('error', reject);
  socket.once('connect', () => {
    socket.off('error', reject);
    resolve(socket);
  });
  return promise;
}
