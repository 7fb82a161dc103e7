/**
 * The initial data of a new server: created once on this host, then copied for each server of each
 * cloud, which takes a tenth of the time. The copy's server changes the administrator's password
 * when it first responds, so that servers share no secret.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '../../../platform/clock.ts';
import { syncFolder, writeDurableFile } from '../../../platform/files.ts';
import { hostPath } from '../../../platform/host/host-programs.ts';
import { randomBase62 } from '../../../platform/ids.ts';
import { ROOT } from '../../../platform/program-files.ts';
import { removeTree } from '../../host-process/foreign-files.ts';
import type { HostProcesses } from '../../host-process/host-processes.ts';
import { makeServerSecret, readServerSecret, rolePassword, SECRET_BYTES } from '../links/server-secret.ts';
import type { ServerFolders } from '../managed-server.ts';
import { giveTree } from '../processes/server-owner.ts';

export interface DataTemplateDeps {
  /** Directory of this cloud's, for templates that the host's folder cannot hold. */
  readonly folder: string;
  /** Directory of all clouds of our user on this host. */
  readonly shared: string;
  readonly processes: Pick<HostProcesses, 'pathOf'>;
  /** The user that creates it; null: ours. */
  readonly uid: number | null;
  /** Name of the folder with the data, in the home of a server. */
  readonly data: string;
}

/** Folder beside the programs, for templates of our user. Another user's files would not be readable. */
export const SHARED_TEMPLATES = join(ROOT, 'build/templates', String(process.getuid?.() ?? ''));

type Make = (folders: ServerFolders) => Promise<void>;

/** In the keeper of a copy: the secret of its template. */
const FIRST = 'first-secret';
/** Name part of a template that is being created, by any cloud. */
const UNFINISHED = '.making-';
/** A template unchanged for this long has no creator: it was killed. */
const OLD_MS = 3_600_000;

/**
 * The template's name for a program of that version and this recipe: another program or recipe has
 * another template.
 */
export function templateName(version: string, recipe: readonly string[]): string {
  const digest = createHash('sha256').update(JSON.stringify(recipe)).digest('hex').slice(0, 12);
  return `${version}-${digest}`;
}

/** Where a copy goes, and for whom. */
interface CopyWish {
  readonly to: ServerFolders;
  readonly uid: number | null;
  readonly make: Make;
  /** Aborting it ends the copy. */
  readonly closing?: AbortSignal;
}

const NEVER = new AbortController().signal;

export class DataTemplate {
  readonly #deps: DataTemplateDeps;
  readonly #making = new Map<string, Promise<ServerFolders>>();

  constructor(deps: DataTemplateDeps) {
    this.#deps = deps;
  }

  get uid(): number | null {
    return this.#deps.uid;
  }

  /**
   * Copies the template of that name to `to`, for its user, and syncs the copy. `make`: fills the
   * home of a template, so that a crash leaves nothing that looks complete.
   */
  async copy(name: string, { to, uid, make, closing = NEVER }: CopyWish): Promise<void> {
    const { data } = this.#deps;
    const making = this.#making.get(name) ?? this.#made(name, make);
    this.#making.set(name, making);
    // The template may be removed at any time, and is then recreated.
    const from = await making.finally(() => this.#making.delete(name));
    const fresh = join(to.home, `${data}.new`);
    await removeTree(fresh);
    await run('cp', ['-a', '--reflink=auto', join(from.home, data), fresh], closing);
    await giveTree(fresh, uid);
    // One sync for all files, because no server has synced them.
    await runOrLeave('sync', ['-f', fresh], closing);
    writeDurableFile(join(to.keeper, FIRST), readServerSecret(from), 0o600);
    fs.renameSync(fresh, join(to.home, data));
    syncFolder(to.home);
  }

  /** Found, or created: in the host's folder if that is writable. */
  async #made(name: string, make: Make): Promise<ServerFolders> {
    const { folder, shared, data } = this.#deps;
    const found = [folder, shared].map((base) => join(base, name));
    for (const at of found) if (fs.existsSync(join(at, 'home', data))) return this.#foldersAt(at);
    try {
      return await this.#makeIn(shared, { name, make });
    } catch {
      // A package installed by root, or a full disk.
      return this.#makeIn(folder, { name, make });
    }
  }

  async #foldersAt(at: string): Promise<ServerFolders> {
    const home = join(at, 'home');
    return { keeper: join(at, 'keeper'), home, seen: await this.#deps.processes.pathOf(home) };
  }

  /** Other clouds may create the same template: the first is kept, and is complete once it has its name. */
  async #makeIn(base: string, { name, make }: { name: string; make: Make }): Promise<ServerFolders> {
    const { uid } = this.#deps;
    fs.mkdirSync(base, { recursive: true, mode: 0o711 });
    await sweep(base);
    const unfinished = join(base, `${UNFINISHED}${randomBase62(12)}`);
    try {
      const folders = await this.#foldersAt(unfinished);
      for (const path of [folders.keeper, folders.home]) fs.mkdirSync(path, { recursive: true, mode: 0o711 });
      if (uid !== null) fs.chownSync(folders.home, uid, uid);
      makeServerSecret(folders);
      await make(folders);
      // No server's user may change other servers' initial data.
      if (uid !== null) await giveTree(unfinished, process.getuid?.() ?? null);
      fs.chmodSync(unfinished, 0o700);
      await run('sync', ['-f', unfinished]);
      await fs.promises.rename(unfinished, join(base, name)).catch((error) => {
        if (!['ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error;
      });
      syncFolder(base);
    } finally {
      await removeTree(unfinished);
    }
    return this.#foldersAt(join(base, name));
  }
}

/** Removes leftovers of killed creators. */
async function sweep(base: string): Promise<void> {
  for (const name of fs.readdirSync(base)) {
    const path = join(base, name);
    const madeMs = fs.statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY;
    if (name.startsWith(UNFINISHED) && madeMs < systemClock.now() - OLD_MS) await removeTree(path);
  }
}

/** How a server's initial data is created. */
export interface DataMaking {
  readonly folders: ServerFolders;
  /** The server's user; null: ours. */
  readonly uid: number | null;
  readonly passwordOf: (role: string) => string;
}

interface GivenData {
  readonly making: DataMaking;
  readonly make: (making: DataMaking) => Promise<void>;
  /** Aborts when Cloudlet stops; the next start makes the data. */
  readonly closing: AbortSignal;
}

/**
 * Gives a new server its data: a copy of the template of that name; without a template, `make`
 * creates it.
 */
export async function giveData(
  template: DataTemplate | null,
  name: string,
  { making, make, closing }: GivenData,
): Promise<void> {
  if (template === null) return make(making);
  const { folders, uid } = making;
  await template.copy(name, {
    to: folders,
    uid,
    closing,
    make: (at) => {
      const secret = readServerSecret(at);
      const passwordOf = (role: string) => rolePassword(secret, role);
      return make({ folders: at, uid: template.uid, passwordOf });
    },
  });
}

/** The secret for the first login of a copy's administrator; null: it has its own. */
export function firstSecret({ keeper }: Pick<ServerFolders, 'keeper'>): Buffer | null {
  try {
    const secret = fs.readFileSync(join(keeper, FIRST));
    return secret.length === SECRET_BYTES ? secret : null;
  } catch {
    return null;
  }
}

export function forgetFirstSecret({ keeper }: Pick<ServerFolders, 'keeper'>): void {
  fs.rmSync(join(keeper, FIRST), { force: true });
}

/** Ends the program at once when `closing` aborts. */
async function run(program: string, words: readonly string[], closing = NEVER): Promise<void> {
  closing.throwIfAborted();
  const running = promisify(execFile)(program, words, { env: { PATH: hostPath() } });
  const end = () => running.child.kill('SIGKILL');
  closing.addEventListener('abort', end);
  try {
    await running;
  } finally {
    closing.removeEventListener('abort', end);
  }
}

/** Also for a program that only waits for the disk: the kernel ends it when the disk has answered. */
async function runOrLeave(program: string, words: readonly string[], closing: AbortSignal): Promise<void> {
  closing.throwIfAborted();
  const running = promisify(execFile)(program, words, { env: { PATH: hostPath() } });
  const left = Promise.withResolvers<never>();
  const leave = () => {
    running.child.unref();
    left.reject(closing.reason);
  };
  closing.addEventListener('abort', leave);
  try {
    await Promise.race([running, left.promise]);
  } finally {
    closing.removeEventListener('abort', leave);
    running.catch(() => {});
  }
}
