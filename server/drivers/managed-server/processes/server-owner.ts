/** The owner of a server's files, as found on disk. */
import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { hostPath } from '../../../platform/host/host-programs.ts';
import type { ServerFolders } from '../managed-server.ts';

/** In the home of a server, whichever engine's. */
const DATA = 'data';

/** Folder of the server that all accounts share, in the engine's folder. */
export const SHARED = 'server';

/**
 * The user of a server whose data may come from an earlier version, which numbered users
 * differently: the owner of its data. `uid` if there is no data, or if it belongs to us: a copy of
 * the data directory may have lost its owners.
 */
export function userOfData(folder: string, uid: number | null): number | null {
  if (uid === null) return null;
  const owner = ownerOf(join(folder, 'home', DATA));
  return owner === null || owner === process.getuid?.() ? uid : owner;
}

/**
 * Creates the folders of a server, for its user. Files of another user, even if only some, are
 * given to it; `leave`: ends processes that may still run as that user.
 */
export async function makeServerFolders(
  { keeper, home }: Pick<ServerFolders, 'keeper' | 'home'>,
  uid: number | null,
  leave: (owner: number) => Promise<unknown>,
): Promise<void> {
  fs.mkdirSync(keeper, { recursive: true, mode: 0o700 });
  // Without views, dump and load programs must traverse it to reach the socket.
  fs.mkdirSync(home, { recursive: true, mode: 0o711 });
  if (uid === null) return;
  const data = ownerOf(join(home, DATA));
  if (data === null) return fs.chownSync(home, uid, uid);
  if (ownerOf(home) === uid && data === uid) return;
  if (data !== uid && data !== process.getuid?.()) await leave(data);
  await giveTree(home, uid);
}

/**
 * Gives a folder and its contents to a user, itself last. Does not follow links, which the user may
 * have created.
 */
export async function giveTree(path: string, uid: number | null): Promise<void> {
  if (uid === null) return;
  const env = { PATH: hostPath() };
  await promisify(execFile)('chown', ['-Rh', `${uid}:${uid}`, path], { env });
}

/** null: does not exist. */
function ownerOf(path: string): number | null {
  return fs.lstatSync(path, { throwIfNoEntry: false })?.uid ?? null;
}
