/** Finds PostgreSQL's programs: those fetched by the set-up, else those of this host. */
import { execFile } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  globSync,
  readdirSync,
  readFileSync,
  realpathSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { patienceMs } from '../../../platform/host/host-facts.ts';
import { hostPath } from '../../../platform/host/host-programs.ts';
import { readinessOf } from '../../managed-server/database-server.ts';
import {
  compareVersions,
  type NoPrograms,
  unpackedPrograms,
  whyNoPrograms,
} from '../../managed-server/programs/unpacked-programs.ts';
import type { PostgresqlKind } from './postgresql.ts';
import { dataMajor } from './server/data-directory.ts';

const run = promisify(execFile);
const NAME = 'postgresql';
const SERVER = ['postgres', 'initdb'];
const CLIENTS = ['pg_dump', 'psql'];
/** Folders with one subfolder per major version. */
const MAJOR_FOLDERS = ['/usr/lib/postgresql', '/usr/local/lib/postgresql'];
const ASK_MS = 10_000;
/** By major version: the oldest whose psql may load an untrusted dump. */
const OLDEST_MAJOR = 15;
const FIRST_SAFE_MINOR: Readonly<Record<number, number>> = { 15: 19 };
/** In the control file of an extension that every tenant may create. */
const TRUSTED = /^\s*trusted\s*=\s*(?:true|on|yes|1)\s*(?:#.*)?$/m;
const known = new Map<string, readonly string[]>();
const tlsKnown = new Map<string, boolean>();

export interface PostgresqlPrograms {
  /** `15.20`. */
  readonly version: string;
  readonly major: number;
  /** Folder of the programs. */
  readonly bin: string;
  /** False: npm's programs, without clients. */
  readonly hasClients: boolean;
  readonly env: Readonly<Record<string, string>>;
  /** Paths that its processes must see, besides the system's folders. */
  readonly readOnly: readonly string[];
}

/** Checks again each time: packages come and go while we run. `major`: of the existing data; null: any. */
export async function findPrograms(
  major: number | null,
  folders: { readonly unpacked?: string; readonly host?: readonly string[] } = {},
): Promise<PostgresqlPrograms | NoPrograms> {
  const fits = (found: PostgresqlPrograms) => major === null || found.major === major;
  const ours = unpacked(folders.unpacked).filter((found) => fits(found) && isSafe(found.version));
  const whole = ours.find(({ hasClients }) => hasClients);
  if (whole !== undefined) return whole;
  const hosts = (await hostPrograms(folders.host)).filter(fits);
  return hosts.find(({ version }) => isSafe(version)) ?? ours[0] ?? whyNone(major, hosts);
}

/** Why these programs are not sufficient, with the fix; null: nothing is missing. */
export function missingOf({ major, version, hasClients }: PostgresqlPrograms): NoPrograms | null {
  if (hasClients) return null;
  return {
    reason:
      `PostgreSQL ${version} is npm's package, without pg_dump, psql and pg_upgrade: databases cannot be dumped, ` +
      'loaded, copied or upgraded. It uses OpenSSL 1.1, which is no longer maintained',
    fix: `install PostgreSQL ${major} on this host and restart Cloudlet; the data is not changed`,
  };
}

/** Readiness of our own server by its programs, with the extensions that tenants may create. */
export function readinessBy(find: typeof findPrograms): PostgresqlKind['readiness'] {
  return async (folders, problem) => {
    const found = await find(folders && dataMajor(folders));
    if (!('bin' in found)) return Object.assign(readinessOf(found, problem), { extensions: [] });
    const extensions = trustedExtensions(found.bin, found.major);
    return Object.assign(readinessOf(found, problem, missingOf(found)), { extensions });
  };
}

/** The newest programs that can upgrade data to their version; null: none. */
export async function newestPrograms(): Promise<PostgresqlPrograms | null> {
  const all = [...unpacked(), ...(await hostPrograms())];
  const able = all.filter(({ version, bin }) => isSafe(version) && existsSync(join(bin, 'pg_upgrade')));
  return able.sort((a, b) => compareVersions(b.version, a.version))[0] ?? null;
}

function unpacked(folder?: string): PostgresqlPrograms[] {
  return unpackedPrograms(NAME, folder).flatMap(({ version, root, env }) => {
    const bin = join(root, 'usr/lib/postgresql', String(majorOf(version)), 'bin');
    const hasClients = hasAll(bin, CLIENTS);
    return hasAll(bin, SERVER)
      ? [{ version, major: majorOf(version), bin, hasClients, env, readOnly: [root] }]
      : [];
  });
}

async function hostPrograms(folders: readonly string[] = hostFolders()): Promise<PostgresqlPrograms[]> {
  const whole = folders.filter((bin) => hasAll(bin, [...SERVER, ...CLIENTS]));
  const found = await Promise.all(whole.map(describe));
  return found.flat().sort((a, b) => compareVersions(b.version, a.version));
}

function hostFolders(): string[] {
  const listed = MAJOR_FOLDERS.flatMap((folder) =>
    existsSync(folder) ? readdirSync(folder).map((major) => join(folder, major, 'bin')) : [],
  );
  const rpm = readdirSync('/usr').flatMap((name) =>
    /^pgsql-\d+$/.test(name) ? [join('/usr', name, 'bin')] : [],
  );
  // A program in PATH may be a link to another one.
  const onPath = hostPath()
    .split(':')
    .map((folder) => join(folder, 'postgres'))
    .filter(existsSync)
    .map((path) => dirname(realpathSync(path)));
  return [...new Set([...listed, ...rpm, ...onPath])];
}

async function describe(bin: string): Promise<PostgresqlPrograms[]> {
  try {
    const { stdout } = await run(join(bin, 'postgres'), ['--version'], {
      timeout: patienceMs(ASK_MS),
      env: { LANG: 'C' },
    });
    const version = /\(PostgreSQL\) (\d+(?:\.\d+)+)/.exec(stdout)?.[1];
    if (version === undefined) return [];
    const readOnly = bin.startsWith('/usr/') ? [] : [dirname(bin)];
    return [{ version, major: majorOf(version), bin, hasClients: true, env: {}, readOnly }];
  } catch {
    return [];
  }
}

function hasAll(bin: string, names: readonly string[]): boolean {
  return names.every((name) => {
    try {
      accessSync(join(bin, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function majorOf(version: string): number {
  return Number.parseInt(version, 10);
}

function isSafe(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major >= OLDEST_MAJOR && minor >= (FIRST_SAFE_MINOR[major] ?? 0);
}

function whyNone(major: number | null, hosts: readonly PostgresqlPrograms[]): NoPrograms {
  const why = whyNoPrograms(NAME);
  const { reason, fix } = why;
  const [old] = hosts;
  if (major !== null && old === undefined) {
    return {
      reason: `the data was created by PostgreSQL ${major}, which is no longer installed`,
      fix: `install PostgreSQL ${major} again, or copy build/programs from the Cloudlet that created the data`,
    };
  }
  if (why.preparing !== undefined) return why;
  if (old === undefined) return { reason, fix: `${fix}; or install PostgreSQL: apt-get install postgresql` };
  return { reason: `PostgreSQL ${old.version} on this host is too old, and ${reason}`, fix };
}

/**
 * Extensions that every tenant may create, beside the folder of the programs: there distributions have them,
 * or PostgreSQL's own build, or Fedora.
 */
export function trustedExtensions(bin: string, major: number): readonly string[] {
  const locations = [
    `../../../../share/postgresql/${major}`,
    '../share',
    '../share/postgresql',
    '../share/pgsql',
  ];
  const found =
    known.get(bin) ?? locations.map((location) => trustedIn(join(bin, location, 'extension'))).find(hasSome);
  if (found === undefined) return [];
  known.set(bin, found);
  return found;
}

/** Whether the programs were built with OpenSSL, as in distributions. */
export function speaksTls(bin: string): boolean {
  const before = tlsKnown.get(bin);
  if (before !== undefined) return before;
  const can = readFileSync(join(bin, 'postgres')).includes('libssl');
  tlsKnown.set(bin, can);
  return can;
}

function trustedIn(folder: string): string[] {
  const controls = globSync('*.control', { cwd: folder }).sort();
  const trusted = controls.filter((name) => TRUSTED.test(readFileSync(join(folder, name), 'utf8')));
  return trusted.map((name) => basename(name, '.control'));
}

const hasSome = (names: readonly string[]) => names.length > 0;
