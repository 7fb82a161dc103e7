/** Creates or checks the data directory before anything is opened in it. */
import { accessSync, chmodSync, constants, mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

const OTHERS_MAY_WRITE = 0o002;
const STICKY = 0o1000;

/** Every data directory has one of these files after its first start. */
const MARKS = ['metadata.db', 'master.key', 'node.json'];

/** True if a cloud was started there before. */
export function holdsCloud(path: string): boolean {
  return MARKS.some((name) => statSync(join(path, name), { throwIfNoEntry: false }) !== undefined);
}

/** Creates the directory (0700) if missing; returns its path. Throws StartupError if it cannot be used. */
export function openDataDirectory(path: string): string {
  try {
    makeDirectory(path);
    assertOwner(path);
    assertOurs(path);
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    chmodSync(path, 0o700);
  } catch (cause) {
    if (cause instanceof StartupError) throw cause;
    throw new StartupError(
      `The data directory ${path} is not writable (${codeOf(cause)}): change its owner or ${ELSEWHERE}`,
      cause,
    );
  }
  return path;
}

const ELSEWHERE = 'set CLOUDLET_DATA_DIR';

/**
 * Step by step: Node's own `recursive` retries forever if a directory cannot be created, as below
 * /proc.
 */
function makeDirectory(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return;
  if (found !== undefined) throw new StartupError(`${path} is a file, not a directory: ${ELSEWHERE}`);
  makeDirectory(dirname(path));
  mkdirSync(path, { mode: 0o700 });
}

function assertOwner(path: string): void {
  const problem = otherOwnerOf(path);
  if (problem !== null) throw new StartupError(`${problem.detail}: ${problem.fix}, or ${ELSEWHERE}`);
}

/** Entries that a first start creates before its database exists. */
const FIRST =
  /^(lost\+found|lock(-journal)?|reserve|cloud\.json(\.new)?|control\.(sock|token)|metadata\.db(-wal|-shm|-journal)?)$/;
/** Entries that a cloud creates later: a missing database is then reported elsewhere. */
const LATER =
  /^(master\.key(\.new)?|metadata-moved\.json|metadata-moving-.*|blobs|vms|images|databases|recovery|recovery-work|recovery-opened|drill|\.restoring)$/;

/** Throws StartupError if it contains foreign files, which must not be changed. */
function assertOurs(path: string): void {
  if (holdsCloud(path)) return;
  const others = readdirSync(path).filter((name) => !FIRST.test(name) && !LATER.test(name));
  if (others.length === 0) return;
  const some = others.slice(0, 3).join(', ') + (others.length > 3 ? ', …' : '');
  throw new StartupError(
    `The data directory ${path} contains files (${some}), but no cloud: choose an empty directory, or ${ELSEWHERE}`,
  );
}

/** The problem if another user owns the directory, who could replace master key and database. */
export function otherOwnerOf(path: string): { readonly detail: string; readonly fix: string } | null {
  const own = process.geteuid?.();
  const { uid } = statSync(path);
  if (own === undefined || uid === own) return null;
  const detail = `The data directory ${path} belongs to another user (uid ${uid})`;
  const fix = own === 0 ? `chown root ${path}, or run Cloudlet as that user` : 'run Cloudlet as that user';
  return { detail, fix };
}

/**
 * The parent directory of `path` if its mode lets every user of this host rename its entries; null: it does
 * not.
 */
export function openParentOf(path: string): string | null {
  const parent = dirname(path);
  if (parent === path) return null;
  const { mode } = statSync(parent);
  return (mode & OTHERS_MAY_WRITE) !== 0 && (mode & STICKY) === 0 ? parent : openParentOf(parent);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}

/** A reason not to start: a one-line message that an operator can act on. */
export class StartupError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'StartupError';
  }
}
