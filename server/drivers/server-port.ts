/** The port of a managed server: chosen once, then kept, because clients are configured with it. */
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { AppError } from '../platform/errors.ts';
import { writeDurableFile } from '../platform/files.ts';

const FILE = 'port';
const TRIES = 1000;
const LISTENING = '0A';

/** The port that was kept in `folder`; null: none was yet, or it cannot be read any more. */
export function keptPort(folder: string): number | null {
  try {
    const port = Number.parseInt(readFileSync(join(folder, FILE), 'utf8'), 10);
    return port > 0 && port < 65_536 ? port : null;
  } catch {
    return null;
  }
}

/** True if a port was stored, even if the file is unreadable now. */
export function hadPort(folder: string): boolean {
  return existsSync(join(folder, FILE));
}

export function keepPort(folder: string, port: number): void {
  writeDurableFile(join(folder, FILE), `${port}\n`, 0o600);
}

/** Alarm text for a changed port. */
export function newPort(title: string, port: number): { readonly detail: string; readonly fix: string } {
  return {
    detail: `The stored port of ${title} was lost: it now listens on port ${port}`,
    fix: 'Tell users the new address of their databases: GET /api/databases/{id}/credentials shows it',
  };
}

/** The next start chooses another port. */
export function forgetPort(folder: string): void {
  rmSync(join(folder, FILE), { force: true });
}

/** The first free port from `first` on. */
export async function freePort(first: number): Promise<number> {
  for (let port = first; port < first + TRIES; port++) if (await isFree(port)) return port;
  throw new Error(`no port from ${first} to ${first + TRIES - 1} is free`);
}

/** Whether a server could listen there, on loopback. */
export function isFree(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const server = createServer();
  server.once('error', () => resolve(false));
  server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  return promise;
}

/** `nginx (process 123)`; null if it is not visible to us. */
export function holderOf(port: number): string | null {
  const pid = listenersAt(port)?.[0];
  return pid === undefined ? null : `${readFileSync(`/proc/${pid}/comm`, 'utf8').trim()} (process ${pid})`;
}

/** Processes that listen on that port; null: some are not visible to us. */
export function listenersAt(port: number): readonly number[] | null {
  const inodes = new Set([...inodesOf('/proc/net/tcp', port), ...inodesOf('/proc/net/tcp6', port)]);
  if (inodes.size === 0) return [];
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const holders = pids.filter((pid) => filesOf(pid).some((link) => inodes.has(link))).map(Number);
  return holders.length === 0 ? null : holders;
}

function inodesOf(table: string, port: number): string[] {
  const end = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  try {
    const lines = readFileSync(table, 'latin1').trim().split('\n').slice(1);
    const fields = lines.map((line) => line.trim().split(/\s+/));
    return fields
      .filter(([, local, , state]) => state === LISTENING && local?.endsWith(end))
      .map((line) => `socket:[${line[9]}]`);
  } catch {
    return [];
  }
}

/** Files that a process has open, as the kernel names them; empty if Cloudlet may not see them. */
export function filesOf(pid: string | number): string[] {
  const links: string[] = [];
  try {
    for (const fd of readdirSync(`/proc/${pid}/fd`)) {
      // Descriptors may close meanwhile, such as the one of this scan.
      const link = linkOf(`/proc/${pid}/fd/${fd}`);
      if (link !== null) links.push(link);
    }
  } catch {
    // The process ended, or is not visible to Cloudlet.
  }
  return links;
}

function linkOf(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

/** For a server whose users know its port. */
export function portTaken(port: number, title: string): AppError {
  const holder = holderOf(port) ?? 'another program';
  return new AppError('engine_unavailable', `port ${port} of ${title} is taken by ${holder}`, {
    hint: 'stop that program; the server then starts within a minute',
    retryAfterSeconds: 5,
  });
}

/** True when a connection to the port of this host is accepted. */
export function hasListener(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.on('error', () => resolve(false));
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}
