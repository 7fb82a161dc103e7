/** Database programs fetched by the set-up; if it could not, it recorded why. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Preparing } from '../../../platform/host/preparing.ts';
import { ROOT } from '../../../platform/program-files.ts';
import { preparing, saysPreparing, WAIT_FOR_IT } from '../../preparation/preparing.ts';

/** The folder that scripts/database-programs.js fills. */
const FOLDER = join(ROOT, 'build/programs');
/** Library folders of Debian and others. */
const LIBRARIES = ['usr/lib/x86_64-linux-gnu', 'lib/x86_64-linux-gnu'];
const ARM_LIBRARIES = ['usr/lib/aarch64-linux-gnu', 'lib/aarch64-linux-gnu'];

export interface UnpackedPrograms {
  /** `15.20`. */
  readonly version: string;
  /** Holds `usr/`; absolute. */
  readonly root: string;
  /** Environment variables that let programs find their libraries. */
  readonly env: Readonly<Record<string, string>>;
}

export interface NoPrograms {
  readonly reason: string;
  readonly fix: string;
  /** The set-up installs the programs automatically. */
  readonly preparing?: Preparing;
}

/** All programs with that name, newest first. */
export function unpackedPrograms(name: string, folder = FOLDER): UnpackedPrograms[] {
  const found = namesIn(folder).flatMap((entry) => {
    const version = entry.startsWith(`${name}-`) ? entry.slice(name.length + 1) : '';
    return /^\d+(?:\.\d+)*$/.test(version) ? [{ version, root: join(folder, entry) }] : [];
  });
  found.sort((a, b) => compareVersions(b.version, a.version));
  const libraries = process.arch === 'arm64' ? ARM_LIBRARIES : LIBRARIES;
  return found.map(({ version, root }) => ({
    version,
    root,
    env: { LD_LIBRARY_PATH: libraries.map((path) => join(root, path)).join(':') },
  }));
}

/** Why there are no programs with that name, from the set-up. */
export function whyNoPrograms(name: 'postgresql' | 'mariadb', folder = FOLDER): NoPrograms {
  const coming = preparing(name);
  if (coming !== null) return { reason: saysPreparing(coming), fix: WAIT_FOR_IT, preparing: coming };
  try {
    const { reason, fix } = JSON.parse(readFileSync(join(folder, `${name}.problem.json`), 'utf8'));
    // Everyone may read it in the status; it must not reveal where this host gets its packages.
    return { reason: String(reason).replace(/\S*:\/\/\S*/g, '…'), fix: String(fix) };
  } catch {
    return {
      reason: 'its programs were not downloaded',
      fix: 'run the set-up (node scripts/setup.js whole)',
    };
  }
}

/** Below 0 if `a` is older. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((text) => text.split('.').map(Number));
  for (let at = 0; at < Math.max(left?.length ?? 0, right?.length ?? 0); at++) {
    const difference = (left?.[at] ?? 0) - (right?.[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
