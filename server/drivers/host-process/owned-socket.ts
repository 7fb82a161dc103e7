/** Connects to the unix sockets that a foreign process listens on. */
import * as fs from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';

/** A Linux flag missing in Node: the descriptor refers to the path without opening it. */
const O_PATH = 0o10000000;

/**
 * A connection to the socket `name` in `folder`. Rejects when nobody listens there, and when it is a link or
 * was made by anyone but the owner of the folder: its process must not send us elsewhere. It can give the
 * name to something else at any moment, so the checked socket is held open and connected to.
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
 * The same for who connects himself: a path that leads to that very socket until close(), which
 * may be called again. Throws.
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
