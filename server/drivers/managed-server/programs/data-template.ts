/**
 * The data that a new server begins with: made once, then copied for each, which takes a tenth of the time.
 * Its administrator has a password that the copy's server changes when it first answers.
 */
import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { syncFolder, writeDurableFile } from '../../../platform/durable-file.ts';
import { hostPath } from '../../../platform/host/host-programs.ts';
import type { HostProcesses } from '../../host-process/host-processes.ts';
import { removeTree } from '../../host-process/tree-removal.ts';
import { makeServerSecret, readServerSecret, rolePassword, SECRET_BYTES } from '../links/server-secret.ts';
import type { ServerFolders } from '../managed-server.ts';

export interface DataTemplateDeps {
  /** Directory of Cloudlet's, for templates only. */
  readonly folder: string;
  readonly processes: Pick<HostProcesses, 'pathOf'>;
  /** The user that makes it; null: ours. */
  readonly uid: number | null;
  /** Name of the folder with the data, in the home of a server. */
  readonly data: string;
}

/** In the keeper of a copy: the secret of its template. */
const FIRST = 'first-secret';

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
   * Puts a copy of the template of that version into `to`, for its user, once it is on the disk. `make`:
   * fills the home of one, in a way that a crash leaves nothing that looks whole.
   */
  async copy(
    version: string,
    {
      to,
      uid,
      make,
    }: { to: ServerFolders; uid: number | null; make: (folders: ServerFolders) => Promise<void> },
  ): Promise<void> {
    const { data } = this.#deps;
    const made = this.#making.get(version) ?? this.#made(version, make);
    this.#making.set(version, made);
    const from = await made.catch((error) => {
      this.#making.delete(version);
      throw error;
    });
    const fresh = join(to.home, `${data}.new`);
    await removeTree(fresh);
    await run('cp', ['-a', '--reflink=auto', join(from.home, data), fresh]);
    if (uid !== null) await run('chown', ['-Rh', `${uid}:${uid}`, fresh]);
    // One sync for all files, because no server has synced them.
    await run('sync', ['-f', fresh]);
    writeDurableFile(join(to.keeper, FIRST), readServerSecret(from), 0o600);
    fs.renameSync(fresh, join(to.home, data));
    syncFolder(to.home);
  }

  async #made(version: string, make: (folders: ServerFolders) => Promise<void>): Promise<ServerFolders> {
    const { folder, processes, uid, data } = this.#deps;
    const at = join(folder, version);
    const home = join(at, 'home');
    const folders = { keeper: join(at, 'keeper'), home, seen: await processes.pathOf(home) };
    if (fs.existsSync(join(home, data))) return folders;
    for (const path of [folders.keeper, home]) {
      await removeTree(path);
      fs.mkdirSync(path, { recursive: true, mode: 0o711 });
    }
    if (uid !== null) fs.chownSync(home, uid, uid);
    makeServerSecret(folders);
    await make(folders);
    return folders;
  }
}

/** The making of a server's first data. */
export interface DataMaking {
  readonly folders: ServerFolders;
  /** The server's user; null: ours. */
  readonly uid: number | null;
  readonly passwordOf: (role: string) => string;
}

/** Gives a new server its data: a copy of the template of that version; without one, `make` makes them. */
export async function giveData(
  template: DataTemplate | null,
  version: string,
  { making, make }: { readonly making: DataMaking; readonly make: (making: DataMaking) => Promise<void> },
): Promise<void> {
  if (template === null) return make(making);
  const { folders, uid } = making;
  await template.copy(version, {
    to: folders,
    uid,
    make: (at) => {
      const secret = readServerSecret(at);
      const passwordOf = (role: string) => rolePassword(secret, role);
      return make({ folders: at, uid: template.uid, passwordOf });
    },
  });
}

/** The secret by which a copy's administrator comes in for the first time; null: it has its own. */
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

async function run(program: string, words: readonly string[]): Promise<void> {
  await promisify(execFile)(program, words, { env: { PATH: hostPath() } });
}
