/** Connects to the unix sockets that a guest's process listens on. */
import * as fs from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';

/** What the kernel takes as the path of a unix socket, without the final zero. */
const MAX_PATH_BYTES = 107;

/**
 * A connection to the socket `name` in `folder`. Rejects when nobody listens there, and when it is a link:
 * the folder belongs to the guest's process, which must not send us elsewhere.
 */
export async function connectIn(folder: string, name: string): Promise<Socket> {
  const path = join(folder, name);
  if (!fs.lstatSync(path).isSocket()) throw new Error(`${name} is no socket`);
  if (Buffer.byteLength(path) <= MAX_PATH_BYTES) return connected(path);
  // The same folder under a short name, which is good as long as the descriptor is open.
  const fd = fs.openSync(folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
  try {
    return await connected(`/proc/self/fd/${fd}/${name}`);
  } finally {
    fs.closeSync(fd);
  }
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
